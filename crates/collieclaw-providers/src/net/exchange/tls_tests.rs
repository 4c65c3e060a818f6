//! Encrypted connections to a test server with its own certificate.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use ureq::tls::{Certificate, RootCerts};

use super::*;
use crate::cancel::{CancelFlag, CancelReason};

/// A key and a certificate for `tls.example`, used only by these tests.
const PEM: &[u8] = include_bytes!("test-server.pem");

/// Starts a server that answers one request over TLS, and returns its port.
fn server() -> u16 {
    let certificate = CertificateDer::from_pem_slice(PEM).unwrap();
    let key = PrivateKeyDer::from_pem_slice(PEM).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || -> std::io::Result<()> {
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(connection, listener.accept()?.0);
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            request.extend(byte);
        }
        let body = "x".repeat(100_000);
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
        stream.flush()
    });
    port
}

fn get(host: &str, port: u16, trusted: RootCerts, cancel: &CancelFlag) -> Result<usize, ExchangeError> {
    let url = RequestUrl::parse(&format!("https://{host}:{port}/")).unwrap();
    let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let deadline = CancellableDeadline::new(cancel, Duration::from_secs(30));
    let request =
        HttpRequest { method: HttpMethod::Get, url: &url, addresses: &addresses, headers: &[], body: "" };
    send_with_roots(&request, &deadline, trusted)?.read(1_000_000).map(|bytes| bytes.len())
}

fn test_roots() -> RootCerts {
    RootCerts::new_with_certs(&[Certificate::from_pem(PEM).unwrap()])
}

#[test]
fn a_server_with_a_trusted_certificate_is_read() {
    assert_eq!(get("tls.example", server(), test_roots(), &CancelFlag::new().unwrap()), Ok(100_000));
}

#[test]
fn a_server_with_an_untrusted_certificate_is_rejected() {
    let cancel = CancelFlag::new().unwrap();
    for (host, trusted) in [("tls.example", RootCerts::WebPki), ("other.example", test_roots())] {
        match get(host, server(), trusted, &cancel) {
            Err(ExchangeError::Failed(why)) => assert!(why.contains("certificate"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_hanging_handshake_ends_when_cancelled() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let cancel = CancelFlag::new().unwrap();
    std::thread::scope(|scope| {
        let asking =
            scope.spawn(|| get("tls.example", listener.local_addr().unwrap().port(), test_roots(), &cancel));
        let (mut accepted, _) = listener.accept().unwrap();
        // The first byte of the handshake has arrived, and is never answered.
        accepted.read_exact(&mut [0]).unwrap();
        cancel.raise(CancelReason::Operator);
        assert_eq!(asking.join().unwrap(), Err(ExchangeError::Stopped(WaitError::Cancelled)));
    });
}
