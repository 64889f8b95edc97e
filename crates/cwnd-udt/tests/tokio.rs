//! Streams in a tokio runtime.

use crate::support::stream_config;
use cwnd_udt::secure::{Credentials, Key};
use cwnd_udt::{Config, Endpoint, UdtListener, UdtStream};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

fn config() -> Config {
    stream_config("udt")
}

/// Concurrent connections between two ports.
const MANY: usize = 1000;

#[tokio::test]
async fn tasks_of_one_thread_serve_a_thousand_connections() {
    let listener = UdtListener::bind("127.0.0.1:0", &config()).unwrap();
    let to = listener.local_addr();
    let server = tokio::spawn(async move {
        for _ in 0..MANY {
            let (mut stream, _) = listener.accept_async().await.unwrap();
            tokio::spawn(async move {
                let mut data = vec![0; 10_000];
                stream.read_exact(&mut data).await.unwrap();
                stream.write_all(&data).await.unwrap();
                stream.shutdown().await.unwrap();
            });
        }
    });
    let port = Endpoint::bind("127.0.0.1:0").unwrap();
    let clients = (0..MANY).map(|n| {
        let port = port.clone();
        tokio::spawn(async move {
            let mut stream = port.connect_async(to, &config()).await.unwrap();
            let data = [n as u8; 10_000];
            stream.write_all(&data).await.unwrap();
            let mut echo = Vec::new();
            stream.read_to_end(&mut echo).await.unwrap();
            assert!(echo == data);
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    server.await.unwrap();
}

#[tokio::test]
async fn a_large_stream_is_delivered_through_split_halves() {
    let listener = UdtListener::bind("127.0.0.1:0", &config()).unwrap();
    let client = UdtStream::connect_async(listener.local_addr(), &config()).await.unwrap();
    let (server, _) = listener.accept_async().await.unwrap();
    let (mut output, (mut input, _)) = (client, tokio::io::split(server));
    let data: Vec<u8> = (0..30_000_000u32).map(|n| (n % 251) as u8).collect();
    let sent = data.clone();
    let writer = tokio::spawn(async move {
        output.write_all(&sent).await.unwrap();
        output.shutdown().await.unwrap();
        output.write_all(b"more").await.unwrap_err().kind()
    });
    let mut arrived = Vec::new();
    input.read_to_end(&mut arrived).await.unwrap();
    assert!(arrived == data);
    assert_eq!(writer.await.unwrap(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_read_can_be_cancelled_and_repeated() {
    let listener = UdtListener::bind("127.0.0.1:0", &config()).unwrap();
    let mut client = UdtStream::connect_async(listener.local_addr(), &config()).await.unwrap();
    let (mut server, _) = listener.accept_async().await.unwrap();
    let mut buffer = [0; 10];
    let early = timeout(Duration::from_millis(50), server.read(&mut buffer)).await;
    assert!(early.is_err());
    client.write_all(b"now").await.unwrap();
    assert_eq!(server.read(&mut buffer).await.unwrap(), 3);
}

#[tokio::test]
async fn a_stream_with_a_key() {
    let key = Key::from_file_contents(&std::array::from_fn::<u8, 32, _>(|at| at as u8)).unwrap();
    let keyed = Config { credentials: Some(Credentials::Key(key)), ..config() };
    let listener = UdtListener::bind("127.0.0.1:0", &keyed).unwrap();
    let to = listener.local_addr();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept_async().await.unwrap();
        let mut data = vec![0; 1_000_000];
        stream.read_exact(&mut data).await.unwrap();
        stream.write_all(&data).await.unwrap();
        stream.shutdown().await.unwrap();
        listener
    });
    let mut client = UdtStream::connect_async(to, &keyed).await.unwrap();
    let data: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    client.write_all(&data).await.unwrap();
    let mut arrived = Vec::new();
    client.read_to_end(&mut arrived).await.unwrap();
    assert!(arrived == data);
    let _listening = echo.await.unwrap();
    let error = UdtStream::connect_async(to, &config()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}
