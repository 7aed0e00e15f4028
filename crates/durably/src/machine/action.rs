//! What a state machine asks for.

use crate::error::{Error, Result};
use crate::machine::Workflow;
use crate::names::{ActivityRef, Data};
use crate::options::{activity_options, defaults};
use durably_kernel::{Action as Asked, ActivityOptions, Failure, Payload};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// What a handler returns.
pub type Actions<W> = Result<Vec<Action<W>>>;

/// What a state machine asks for. Ids are its own and unique within a run.
pub struct Action<W: ?Sized> {
    pub(crate) asked: Result<Asked>,
    workflow: PhantomData<fn(&W)>,
}

impl<W: ?Sized> fmt::Debug for Action<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.asked, f)
    }
}

impl<W: ?Sized> Action<W> {
    fn ok(asked: Asked) -> Action<W> {
        Action { asked: Ok(asked), workflow: PhantomData }
    }

    /// Have an activity executed; options chain on it.
    pub fn activity<I: Data, O: Data>(
        id: impl Into<String>,
        activity: ActivityRef<I, O>,
        input: &I,
    ) -> ActivityAction<W> {
        ActivityAction {
            id: id.into(),
            activity_type: activity.name(),
            input: Payload::of(input).map_err(Error::from),
            options: defaults(),
            workflow: PhantomData,
        }
    }

    /// Give an activity up; one that is not open is left alone.
    pub fn cancel_activity(id: impl Into<String>) -> Action<W> {
        Action::ok(Asked::CancelActivity { id: id.into().into() })
    }

    /// Be told after a while, by `on_timer_fired`.
    pub fn timer(id: impl Into<String>, delay: Duration) -> Action<W> {
        Action::ok(Asked::StartTimer { id: id.into().into(), delay })
    }

    /// Give a timer up; one that is not open is left alone.
    pub fn cancel_timer(id: impl Into<String>) -> Action<W> {
        Action::ok(Asked::CancelTimer { id: id.into().into() })
    }

    /// End with an error.
    pub fn fail(error: impl Into<Error>) -> Action<W> {
        Action::ok(Asked::Fail { error: Failure::from(error.into()) })
    }

    /// End as cancelled.
    pub fn cancelled(reason: impl Into<String>) -> Action<W> {
        Action::ok(Asked::Cancelled { reason: reason.into() })
    }
}

impl<W: Workflow> Action<W> {
    /// End with a result.
    pub fn complete(output: &W::Output) -> Action<W> {
        Action {
            asked: Payload::of(output)
                .map(|output| Asked::Complete { output })
                .map_err(Error::from),
            workflow: PhantomData,
        }
    }
}

/// An activity that is asked for.
#[must_use = "return it from the handler"]
pub struct ActivityAction<W: ?Sized> {
    id: String,
    activity_type: &'static str,
    input: Result<Payload>,
    options: Arc<ActivityOptions>,
    workflow: PhantomData<fn(&W)>,
}

impl<W: ?Sized> fmt::Debug for ActivityAction<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActivityAction({:?} of {:?})", self.id, self.activity_type)
    }
}

impl<W: ?Sized> ActivityAction<W> {
    fn options_mut(&mut self) -> &mut ActivityOptions {
        Arc::make_mut(&mut self.options)
    }
}
activity_options!([W: ?Sized] ActivityAction<W>);

impl<W: ?Sized> From<ActivityAction<W>> for Action<W> {
    fn from(activity: ActivityAction<W>) -> Action<W> {
        let ActivityAction { id, activity_type, input, options, .. } = activity;
        let asked = input.map(|input| Asked::ScheduleActivity {
            id: id.into(),
            activity_type: activity_type.into(),
            input,
            options,
            inline: false,
        });
        Action { asked, workflow: PhantomData }
    }
}

/// The actions of a handler: `actions![Action::timer("t", delay), Action::activity("a", A, &input)]`.
#[macro_export]
macro_rules! actions {
    ($($action:expr),* $(,)?) => {
        ::core::result::Result::Ok(::std::vec![$(::core::convert::Into::into($action)),*])
    };
}
