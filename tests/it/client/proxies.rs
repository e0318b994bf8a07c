//! Dialling through proxies.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use talos_client::{Client, Error, Kind, ProxyRules};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{address, cluster, node, options, text};

/// What a proxy was asked for, in order.
type Asked = Arc<Mutex<Vec<String>>>;

/// A CONNECT proxy that answers with `status` and then, for 200, passes bytes on.
async fn http_proxy(status: u16) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Asked::default();
    let log = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let log = log.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let target = head.split(' ').nth(1).unwrap().to_string();
                log.lock().unwrap().push(head);
                let answer = format!("HTTP/1.1 {status} Said\r\nA: b\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
                if status == 200 {
                    let mut onward = TcpStream::connect(target).await.unwrap();
                    tokio::io::copy_bidirectional(&mut stream, &mut onward)
                        .await
                        .ok();
                }
            });
        }
    });
    (address, asked)
}

/// A SOCKS5 proxy that wants this user name and password.
async fn socks_proxy(user: &'static str, password: &'static str) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Asked::default();
    let log = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let log = log.clone();
            tokio::spawn(async move {
                let target = socks_greeting(&mut stream, user, password).await?;
                log.lock().unwrap().push(target.to_string());
                let mut onward = TcpStream::connect(target).await.ok()?;
                stream
                    .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
                    .await
                    .ok()?;
                tokio::io::copy_bidirectional(&mut stream, &mut onward)
                    .await
                    .ok()
            });
        }
    });
    (address, asked)
}

/// Runs RFC 1928 and 1929 as far as a client with a password needs them.
async fn socks_greeting(stream: &mut TcpStream, user: &str, password: &str) -> Option<SocketAddr> {
    let read = async |stream: &mut TcpStream, length: usize| {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await.ok().map(|_| bytes)
    };
    let methods = read(stream, 2).await?[1];
    read(stream, methods.into()).await?;
    stream.write_all(&[5, 2]).await.ok()?;
    let length = read(stream, 2).await?[1];
    let given_user = read(stream, length.into()).await?;
    let length = read(stream, 1).await?[0];
    let given_password = read(stream, length.into()).await?;
    let known = given_user == user.as_bytes() && given_password == password.as_bytes();
    stream.write_all(&[1, u8::from(!known)]).await.ok()?;
    if !known {
        return None;
    }
    let request = read(stream, 4).await?;
    let ip: [u8; 4] = match request[3] {
        1 => read(stream, 4).await?.try_into().ok()?,
        3 => {
            let length = read(stream, 1).await?[0];
            let name = String::from_utf8(read(stream, length.into()).await?).ok()?;
            name.parse::<std::net::Ipv4Addr>().ok()?.octets()
        }
        _ => return None,
    };
    let port = u16::from_be_bytes(read(stream, 2).await?.try_into().ok()?);
    Some(SocketAddr::from((ip, port)))
}

async fn through(proxy: &str, cluster: &talos_sim::Cluster) -> Result<(), Error> {
    let mut options = options(cluster, &["os:admin"]);
    options.proxy = ProxyRules::always(proxy).unwrap();
    let client = Client::new(options)?;
    node(&client, cluster, 0).version().await.map(|_| ())
}

#[tokio::test]
async fn an_http_proxy_is_asked_for_the_endpoint() {
    let cluster = cluster(1, 0).await;
    let (proxy, asked) = http_proxy(200).await;
    through(&format!("http://user:pass%21@{proxy}"), &cluster)
        .await
        .unwrap();
    let asked = asked.lock().unwrap().join("");
    let host = address(&cluster, 0);
    assert!(
        asked.starts_with(&format!("CONNECT {host}:50000 HTTP/1.1\r\n")),
        "{asked}"
    );
    assert!(
        asked.contains("\r\nProxy-Authorization: Basic dXNlcjpwYXNzIQ==\r\n"),
        "{asked}"
    );
    assert!(asked.contains("\r\nUser-Agent: "), "{asked}");
}

#[tokio::test]
async fn a_socks_proxy_gets_user_and_password() {
    let cluster = cluster(1, 0).await;
    let (proxy, asked) = socks_proxy("user", "pass").await;
    through(&format!("socks5://user:pass@{proxy}"), &cluster)
        .await
        .unwrap();
    assert_eq!(
        *asked.lock().unwrap(),
        [format!("{}:50000", address(&cluster, 0))]
    );
    let error = through(&format!("socks5://user:wrong@{proxy}"), &cluster)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::NotReachable);
    assert!(!text(&error).contains("wrong"), "{}", text(&error));
}

#[tokio::test]
async fn a_proxy_that_refuses_says_with_which_status() {
    let cluster = cluster(1, 0).await;
    let (proxy, _) = http_proxy(407).await;
    let error = through(&format!("http://u:secret@{proxy}"), &cluster)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::NotReachable);
    assert!(
        text(&error).contains(&format!(
            "proxy http://{proxy} does not let us through: it answered with status 407"
        )),
        "{}",
        text(&error)
    );
    assert!(!text(&error).contains("secret"));
}

#[tokio::test]
async fn a_proxy_that_is_down_is_named() {
    let cluster = cluster(1, 0).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    drop(listener);
    let error = through(&format!("http://{proxy}"), &cluster)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::NotReachable);
    assert!(
        text(&error).contains(&format!(
            "proxy http://{proxy} does not let us through: it cannot be reached"
        )),
        "{}",
        text(&error)
    );
}
