//! A few bytes of a protocol buffer, for models that no encoder would write.

/// A field of a message: number, then content with its length in front.
pub fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend_from_slice(content);
    bytes
}
