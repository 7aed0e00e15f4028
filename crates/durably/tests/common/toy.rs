//! A codec for tests: every call gives other bytes, and calls fail as planned.
#![allow(dead_code, reason = "each test file uses a part of it")]

use durably::{Codec, Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Which way a value goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Encode,
    Decode,
}

/// How a call goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    Fails,
    Panics,
}

struct Plan {
    way: Way,
    how: How,
    value: String,
    times: u32,
}

/// What goes wrong with which values; shared by all codecs that it is given to.
#[derive(Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Vec<Plan>>>);

impl Trouble {
    /// The next so many calls with a value that has this text in it go wrong.
    pub(crate) fn plan(&self, way: Way, how: How, value: &str, times: u32) {
        self.0.lock().unwrap().push(Plan { way, how, value: value.to_owned(), times });
    }

    /// From now on all goes well.
    pub(crate) fn end(&self) {
        self.0.lock().unwrap().clear();
    }

    fn next(&self, way: Way, plain: &[u8]) -> Option<How> {
        let text = String::from_utf8_lossy(plain);
        let mut plans = self.0.lock().unwrap();
        let fits = |plan: &&mut Plan| {
            plan.way == way && plan.times > 0 && text.contains(plan.value.as_str())
        };
        let plan = plans.iter_mut().find(fits)?;
        plan.times -= 1;
        Some(plan.how)
    }

    fn strike(&self, way: Way, plain: &[u8]) -> Result<()> {
        match self.next(way, plain) {
            Some(How::Fails) => Err(Error::retryable("the key server is down")),
            Some(How::Panics) => panic!("the key server is down"),
            None => Ok(()),
        }
    }
}

/// A stream of bytes from a nonce, laid over the value. No encryption, but nobody reads it.
pub(crate) struct Toy {
    pub(crate) name: &'static str,
    pub(crate) trouble: Trouble,
    nonce: AtomicU64,
}

impl Toy {
    pub(crate) fn new(name: &'static str) -> Toy {
        Toy::with(name, &Trouble::default())
    }

    pub(crate) fn with(name: &'static str, trouble: &Trouble) -> Toy {
        Toy { name, trouble: trouble.clone(), nonce: AtomicU64::new(u64::from(std::process::id())) }
    }
}

fn laid_over(nonce: u64, bytes: &[u8]) -> Vec<u8> {
    let mut state = nonce | 1;
    let next = bytes.iter().map(|byte| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        byte ^ (state >> 56) as u8
    });
    next.collect()
}

impl Codec for Toy {
    fn name(&self) -> &str {
        self.name
    }

    fn encode(&self, plain: &[u8]) -> Result<Vec<u8>> {
        self.trouble.strike(Way::Encode, plain)?;
        let nonce = self.nonce.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        Ok([&nonce.to_le_bytes(), laid_over(nonce, plain).as_slice()].concat())
    }

    fn decode(&self, coded: &[u8]) -> Result<Vec<u8>> {
        let Some((nonce, bytes)) = coded.split_first_chunk() else {
            return Err(Error::permanent("it is too short"));
        };
        let plain = laid_over(u64::from_le_bytes(*nonce), bytes);
        self.trouble.strike(Way::Decode, &plain)?;
        Ok(plain)
    }
}
