//! Values that users pass through us: JSON that is carried byte for byte and never looked into.

use crate::code::Code;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// A JSON text. Cheap to clone.
#[derive(Clone)]
pub struct Payload(Arc<RawValue>);

/// A value that is no JSON, or JSON that is not of the type asked for.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The value could not be written as JSON.
    #[error("the value of type {type_name} cannot be written as JSON: {source}")]
    Encode {
        /// Type of the value.
        type_name: &'static str,
        /// What serde said.
        source: serde_json::Error,
    },
    /// The JSON does not fit the type.
    #[error("the JSON does not fit the type {type_name}: {source}")]
    Decode {
        /// Type asked for.
        type_name: &'static str,
        /// What serde said.
        source: serde_json::Error,
    },
}

impl PayloadError {
    /// The stable code of the error.
    pub fn code(&self) -> Code {
        match self {
            PayloadError::Encode { .. } => Code::ENCODE,
            PayloadError::Decode { .. } => Code::DECODE,
        }
    }
}

impl Payload {
    /// Writes a value as JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Payload, PayloadError> {
        serde_json::value::to_raw_value(value).map(|raw| Payload(raw.into())).map_err(|source| {
            PayloadError::Encode { type_name: std::any::type_name::<T>(), source }
        })
    }

    /// Takes a JSON text as it is.
    pub fn from_text(text: String) -> Result<Payload, PayloadError> {
        RawValue::from_string(text)
            .map(|raw| Payload(raw.into()))
            .map_err(|source| PayloadError::Decode { type_name: "JSON", source })
    }

    /// The JSON value `null`.
    pub fn null() -> Payload {
        static NULL: LazyLock<Payload> =
            LazyLock::new(|| Payload(RawValue::NULL.to_owned().into()));
        NULL.clone()
    }

    /// Reads the JSON as a value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, PayloadError> {
        serde_json::from_str(self.text()).map_err(|source| PayloadError::Decode {
            type_name: std::any::type_name::<T>(),
            source,
        })
    }

    /// The JSON text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}
impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads are the users' secrets: their length is all that may reach a log.
        write!(f, "Payload({} bytes)", self.text().len())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(|raw| Payload(raw.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_byte_for_byte() {
        let text = r#"{"b":1.0,"a":[1e2,  "\u00e9"],"b":2}"#;
        let payload = Payload::from_text(text.into()).unwrap();
        let wrapped = serde_json::to_string(&vec![payload]).unwrap();
        let back: Vec<Payload> = serde_json::from_str(&wrapped).unwrap();
        assert_eq!(back[0].text(), text);
    }

    #[test]
    fn a_payload_does_not_show_its_content() {
        assert_eq!(format!("{:?}", Payload::of("secret").unwrap()), "Payload(8 bytes)");
    }
}
