//! Two inputs are the same if their canonical JSON is: keys sorted, no blanks.

use durably_kernel::Payload;
use serde_json::Value;

/// A hash of the canonical form of a JSON text.
pub(crate) fn hash(payload: &Payload) -> String {
    let mut canonical = String::new();
    match serde_json::from_str::<Value>(payload.text()) {
        Ok(value) => write(&value, &mut canonical),
        // Numbers that no type holds: the text itself is as canonical as it gets.
        Err(_) => canonical.push_str(payload.text()),
    }
    blake3::hash(canonical.as_bytes()).to_hex().to_string()
}

fn write(value: &Value, to: &mut String) {
    match value {
        Value::Object(map) => {
            // Sorted here: the map's own order depends on features of other crates.
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            to.push('{');
            for (n, key) in keys.into_iter().enumerate() {
                if n > 0 {
                    to.push(',');
                }
                to.push_str(&Value::String(key.clone()).to_string());
                to.push(':');
                write(&map[key], to);
            }
            to.push('}');
        }
        Value::Array(items) => {
            to.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    to.push(',');
                }
                write(item, to);
            }
            to.push(']');
        }
        plain => to.push_str(&plain.to_string()),
    }
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
}
