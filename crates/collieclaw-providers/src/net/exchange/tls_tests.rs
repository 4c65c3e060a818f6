//! Encrypted connections, with a server of our own and its own certificate.

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

/// A key and a certificate for `tls.example`, used here and nowhere else.
const PEM: &[u8] = include_bytes!("test-server.pem");

/// Answers one request over TLS; returns its port.
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
    let link = RequestUrl::parse(&format!("https://{host}:{port}/")).unwrap();
    let numbers = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let patience = CancellableDeadline::new(cancel, Duration::from_secs(30));
    let order =
        HttpRequest { method: HttpMethod::Get, url: &link, addresses: &numbers, headers: &[], body: "" };
    send_with_roots(&order, &patience, trusted)?.read(1_000_000).map(|bytes| bytes.len())
}

fn own() -> RootCerts {
    RootCerts::new_with_certs(&[Certificate::from_pem(PEM).unwrap()])
}

#[test]
fn a_server_with_a_trusted_certificate_is_read() {
    assert_eq!(get("tls.example", server(), own(), &CancelFlag::new().unwrap()), Ok(100_000));
}

#[test]
fn a_server_that_nobody_vouches_for_is_not() {
    let cancel = CancelFlag::new().unwrap();
    for (host, trusted) in [("tls.example", RootCerts::WebPki), ("other.example", own())] {
        match get(host, server(), trusted, &cancel) {
            Err(ExchangeError::Failed(why)) => assert!(why.contains("certificate"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_handshake_that_hangs_ends_when_somebody_says_stop() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let cancel = CancelFlag::new().unwrap();
    std::thread::scope(|scope| {
        let asking =
            scope.spawn(|| get("tls.example", listener.local_addr().unwrap().port(), own(), &cancel));
        let _accepted = listener.accept().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        cancel.raise(CancelReason::Operator);
        assert_eq!(asking.join().unwrap(), Err(ExchangeError::Stopped(WaitError::Cancelled)));
    });
}
