//! A few bytes of a protocol buffer, for models that no encoder would write.

/// Encodes a field of a message: its number, then its content preceded by the length.
pub fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut value in [usize::from(number) << 3 | 2, content.len()] {
        while value >= 0x80 {
            bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap());
    }
    bytes.extend_from_slice(content);
    bytes
}
