//! Reads the server name from the beginning of a TLS connection (RFC 8446, 4.1.2, and RFC 6066, 3).

/// The longest handshake message that is examined. Real ones are shorter than 4 KiB.
const MAX_HELLO_BYTES: usize = 16 * 1024;

const RECORD_HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const EXTENSION_SERVER_NAME: u16 = 0;
const EXTENSION_ENCRYPTED_HELLO: u16 = 0xfe0d;

/// The finding about the first bytes that a client sends through a tunnel.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HelloFinding {
    /// More bytes are needed.
    Incomplete,
    /// A handshake for this server, or for a server without a name.
    Hello { server_name: Option<String> },
    /// The connection doesn't begin with a TLS handshake.
    NotTls,
    /// The handshake can't be judged.
    Unacceptable(&'static str),
}

/// Examines the bytes that a client has sent so far.
pub(super) fn examine(bytes: &[u8]) -> HelloFinding {
    match bytes.first() {
        None => return HelloFinding::Incomplete,
        Some(&RECORD_HANDSHAKE) => {}
        Some(_) => return HelloFinding::NotTls,
    }
    let message = match handshake_bytes(bytes) {
        Ok(message) => message,
        Err(fault) => return HelloFinding::Unacceptable(fault),
    };
    let mut reader = ByteReader(&message);
    match (reader.take_u8(), reader.take_u24()) {
        (Some(kind), _) if kind != CLIENT_HELLO => HelloFinding::Unacceptable("the TLS handshake is invalid"),
        (Some(_), Some(length)) if length > MAX_HELLO_BYTES => {
            HelloFinding::Unacceptable("the TLS handshake is too long")
        }
        (Some(_), Some(length)) => match reader.take(length) {
            None => HelloFinding::Incomplete,
            Some(hello) => parse_hello(hello),
        },
        _ => HelloFinding::Incomplete,
    }
}

/// Joins the content of the handshake records, as far as they have arrived.
fn handshake_bytes(mut bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut message = Vec::new();
    while !bytes.is_empty() && message.len() <= MAX_HELLO_BYTES {
        let mut reader = ByteReader(bytes);
        let Some(kind) = reader.take_u8() else { break };
        if kind != RECORD_HANDSHAKE {
            // Records of another kind may follow only a complete message.
            break;
        }
        let (Some(_version), Some(length)) = (reader.take_u16(), reader.take_u16()) else { break };
        if length == 0 {
            return Err("the TLS handshake is invalid");
        }
        let available = usize::from(length).min(reader.0.len());
        message.extend_from_slice(reader.0.get(..available).unwrap_or_default());
        bytes = reader.0.get(available..).unwrap_or_default();
        if available < usize::from(length) {
            break;
        }
    }
    Ok(message)
}

fn parse_hello(hello: &[u8]) -> HelloFinding {
    match read_extensions(hello) {
        None => HelloFinding::Unacceptable("the TLS handshake is invalid"),
        Some(HelloExtensions { is_encrypted: true, .. }) => {
            HelloFinding::Unacceptable("the TLS handshake hides its server name")
        }
        Some(HelloExtensions { server_name, .. }) => HelloFinding::Hello { server_name },
    }
}

struct HelloExtensions {
    server_name: Option<String>,
    is_encrypted: bool,
}

fn read_extensions(hello: &[u8]) -> Option<HelloExtensions> {
    let mut reader = ByteReader(hello);
    reader.take(2 + 32)?;
    let session = reader.take_u8()?;
    reader.take(session.into())?;
    let ciphers = reader.take_u16()?;
    reader.take(ciphers.into())?;
    let compressions = reader.take_u8()?;
    reader.take(compressions.into())?;
    let mut found = HelloExtensions { server_name: None, is_encrypted: false };
    if reader.0.is_empty() {
        return Some(found);
    }
    let length = reader.take_u16()?;
    let mut extensions = ByteReader(reader.take(length.into())?);
    if !reader.0.is_empty() {
        return None;
    }
    while !extensions.0.is_empty() {
        let kind = extensions.take_u16()?;
        let length = extensions.take_u16()?;
        let content = extensions.take(length.into())?;
        match kind {
            // Two names could be read differently by different servers.
            EXTENSION_SERVER_NAME if found.server_name.is_some() => return None,
            EXTENSION_SERVER_NAME => found.server_name = Some(read_server_name(content)?),
            EXTENSION_ENCRYPTED_HELLO => found.is_encrypted = true,
            _ => {}
        }
    }
    Some(found)
}

/// Reads a list that must contain exactly one host name.
fn read_server_name(content: &[u8]) -> Option<String> {
    let mut reader = ByteReader(content);
    let length = reader.take_u16()?;
    let mut list = ByteReader(reader.take(length.into())?);
    let kind = list.take_u8()?;
    let length = list.take_u16()?;
    let name = list.take(length.into())?;
    if kind != 0 || !list.0.is_empty() || !reader.0.is_empty() || !name.is_ascii() {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    Some(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase())
}

/// A reader that never reads beyond the end.
struct ByteReader<'b>(&'b [u8]);

impl<'b> ByteReader<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn take_u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn take_u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    fn take_u24(&mut self) -> Option<usize> {
        let [a, b, c]: [u8; 3] = self.take(3)?.try_into().ok()?;
        Some(usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;

    /// Returns the first bytes that a real TLS client sends.
    pub(in super::super) fn real_hello(server: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = rustls::pki_types::ServerName::try_from(server.to_owned()).unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// Splits the handshake of a record into records of this many bytes.
    fn fragmented(hello: &[u8], size: usize) -> Vec<u8> {
        let record = |part: &[u8]| {
            let length = u16::try_from(part.len()).unwrap().to_be_bytes();
            [&[RECORD_HANDSHAKE, 3, 1][..], &length, part].concat()
        };
        hello[5..].chunks(size).flat_map(record).collect()
    }

    fn with_extension(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = |content: &[u8]| u16::try_from(content.len()).unwrap().to_be_bytes();
        let extension = [&kind.to_be_bytes()[..], &length(content), content].concat();
        let body = [&[3, 3][..], &[0; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &length(&extension), &extension]
            .concat();
        let message = [&[CLIENT_HELLO, 0][..], &length(&body), &body].concat();
        [&[RECORD_HANDSHAKE, 3, 1][..], &length(&message), &message].concat()
    }

    #[test]
    fn the_server_name_of_a_real_client_is_found_however_it_is_split() {
        let hello = real_hello("Registry.Example");
        let expected = HelloFinding::Hello { server_name: Some("registry.example".to_owned()) };
        assert_eq!(examine(&hello), expected);
        for size in [1, 7, 100] {
            assert_eq!(examine(&fragmented(&hello, size)), expected);
        }
        for length in 0..hello.len() {
            assert_eq!(examine(&hello[..length]), HelloFinding::Incomplete, "{length}");
        }
        assert_eq!(examine(&real_hello("192.0.2.1")), HelloFinding::Hello { server_name: None });
    }

    #[test]
    fn handshakes_that_hide_or_repeat_the_name_are_unacceptable() {
        let hidden = HelloFinding::Unacceptable("the TLS handshake hides its server name");
        assert_eq!(examine(&with_extension(EXTENSION_ENCRYPTED_HELLO, &[0])), hidden);
        let invalid = HelloFinding::Unacceptable("the TLS handshake is invalid");
        let two_names = [&[0, 8][..], &[0, 0, 1, b'a'], &[0, 0, 1, b'b']].concat();
        assert_eq!(examine(&with_extension(EXTENSION_SERVER_NAME, &two_names)), invalid);
        assert_eq!(examine(&with_extension(EXTENSION_SERVER_NAME, &[0, 4, 1, 0, 1, b'a'])), invalid);
        assert_eq!(examine(&[22, 3, 1, 0, 0]), invalid);
        assert_eq!(examine(&[22, 3, 1, 0, 1, 2]), invalid);
    }

    #[test]
    fn other_protocols_are_recognised() {
        assert_eq!(examine(b"GET / HTTP/1.1\r\n"), HelloFinding::NotTls);
        assert_eq!(examine(b"SSH-2.0-x\r\n"), HelloFinding::NotTls);
        assert_eq!(examine(b""), HelloFinding::Incomplete);
        assert_eq!(
            examine(&[22, 3, 1, 0, 4, 1, 1, 0, 0]),
            HelloFinding::Unacceptable("the TLS handshake is too long")
        );
    }

    #[test]
    fn no_damaged_handshake_causes_a_panic() {
        let hello = real_hello("registry.example");
        for place in 0..hello.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = hello.clone();
                damaged[place] = value;
                examine(&damaged);
                examine(&damaged[..place]);
            }
        }
    }
}
