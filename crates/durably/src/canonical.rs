//! Two inputs are the same if their canonical JSON is: keys sorted, no blanks.

use durably_kernel::Payload;
use serde::Serialize;
use serde_json::Value;

/// A hash of the canonical form of a JSON text.
pub(crate) fn hash(payload: &Payload) -> String {
    let mut canonical = Vec::with_capacity(payload.text().len());
    match serde_json::from_str::<Value>(payload.text()) {
        Ok(value) => write(&value, &mut canonical),
        // Numbers that no type holds: the text itself is as canonical as it gets.
        Err(_) => canonical.extend_from_slice(payload.text().as_bytes()),
    }
    blake3::hash(&canonical).to_hex().to_string()
}

fn write(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            // Sorted here: the map's own order depends on features of other crates.
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            to.push(b'{');
            for (n, (key, value)) in entries.into_iter().enumerate() {
                if n > 0 {
                    to.push(b',');
                }
                write_plain(key, to);
                to.push(b':');
                write(value, to);
            }
            to.push(b'}');
        }
        Value::Array(items) => {
            to.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    to.push(b',');
                }
                write(item, to);
            }
            to.push(b']');
        }
        plain => write_plain(plain, to),
    }
}

fn write_plain(plain: &impl Serialize, to: &mut Vec<u8>) {
    serde_json::to_writer(to, plain).expect("text and numbers that were read can be written");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        hash(&Payload::from_text(text.into()).unwrap())
    }

    #[test]
    fn order_and_blanks_do_not_matter_but_values_do() {
        assert_eq!(of(r#"{"a":1,"b":[true,null]}"#), of(r#"{ "b" : [true, null], "a" : 1 }"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":2}"#));
        assert_ne!(of(r#"[1,2]"#), of(r#"[2,1]"#));
        assert_eq!(of("1e999"), of("1e999"));
    }

    #[test]
    fn what_was_hashed_before_is_found_again() {
        let text = r#"{ "b\n": [1, -2.5e3, "\u00e9\"", {}, []], "a": { "z": null, "y": 1e2 } }"#;
        let canonical = r#"{"a":{"y":100.0,"z":null},"b\n":[1,-2500.0,"é\"",{},[]]}"#;
        assert_eq!(of(text), blake3::hash(canonical.as_bytes()).to_hex().to_string());
    }
}
