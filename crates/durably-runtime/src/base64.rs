//! Bytes as text: base64 with the standard alphabet and padding (RFC 4648, section 4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of each byte as a digit; `NONE` for those that are none.
const DIGITS: [u8; 256] = {
    let mut digits = [NONE; 256];
    let mut n = 0;
    while n < 64 {
        digits[ALPHABET[n] as usize] = n as u8;
        n += 1;
    }
    digits
};
const NONE: u8 = 0xff;

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for n in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * n)) as usize & 63];
            // One byte fills two digits, two fill three.
            text.push(if n <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes; none if the text is not what [`encode`] writes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut bits = 0u32;
        for n in 0..4 {
            let digit = chunk.get(n).map_or(0, |byte| DIGITS[usize::from(*byte)]);
            if digit == NONE {
                return None;
            }
            bits = (bits << 6) | u32::from(digit);
        }
        let [_, all @ ..] = bits.to_be_bytes();
        let (kept, rest) = all.split_at(chunk.len().checked_sub(1)?);
        // Bits that no byte uses are zero, so that every sequence has one text.
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_standard_hold() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn every_byte_at_every_length_comes_back() {
        for length in 0..70usize {
            for step in [1u8, 37, 91] {
                let bytes: Vec<u8> =
                    (0..length).map(|n| (n as u8).wrapping_mul(step) ^ 0xa5).collect();
                assert_eq!(decode(&encode(&bytes)), Some(bytes));
            }
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for text in
            ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zm9v====", "Zm 9", "Zg==Zg=="]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
