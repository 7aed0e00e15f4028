//! Typed names: registration, start, signal and call take the same one, so that both ends are
//! checked by the compiler, also across processes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;

/// What can be passed through a workflow: anything that serde writes and reads.
pub trait Data: Serialize + DeserializeOwned + Send + 'static {}
impl<T: Serialize + DeserializeOwned + Send + 'static> Data for T {}

macro_rules! typed_name {
    ($(#[$doc:meta])* $name:ident<$($type:ident),+>) => {
        impl<$($type),+> Clone for $name<$($type),+> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<$($type),+> Copy for $name<$($type),+> {}
        impl<$($type),+> fmt::Debug for $name<$($type),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.name)
            }
        }
        impl<$($type),+> $name<$($type),+> {
            /// The name.
            pub const fn name(&self) -> &'static str {
                self.name
            }
        }
    };
}

/// The name of a workflow, with the types of its input and output.
pub struct WorkflowRef<I, O> {
    name: &'static str,
    version: Option<u32>,
    types: PhantomData<fn(I) -> O>,
}
typed_name!(WorkflowRef<I, O>);

impl<I, O> WorkflowRef<I, O> {
    /// A workflow of this name.
    pub const fn new(name: &'static str) -> Self {
        WorkflowRef { name, version: None, types: PhantomData }
    }

    /// The same with a version of its code; 1 where none is given at registration.
    pub const fn version(self, version: u32) -> Self {
        WorkflowRef { name: self.name, version: Some(version), types: PhantomData }
    }

    /// The version, if one is given.
    pub const fn given_version(&self) -> Option<u32> {
        self.version
    }
}

/// The name of an activity, with the types of its input and output.
pub struct ActivityRef<I, O> {
    name: &'static str,
    types: PhantomData<fn(I) -> O>,
}
typed_name!(ActivityRef<I, O>);

impl<I, O> ActivityRef<I, O> {
    /// An activity of this name.
    pub const fn new(name: &'static str) -> Self {
        ActivityRef { name, types: PhantomData }
    }
}

/// The name of a signal, with the type of what it says.
pub struct SignalRef<T> {
    name: &'static str,
    types: PhantomData<fn(T)>,
}
typed_name!(SignalRef<T>);

impl<T> SignalRef<T> {
    /// A signal of this name.
    pub const fn new(name: &'static str) -> Self {
        SignalRef { name, types: PhantomData }
    }
}
