use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::client::Body;

use super::*;

/// A Kubernetes whose API answers `answers` one after the other, then an empty list for ever.
fn scripted(answers: Vec<Result<u16, io::ErrorKind>>) -> (Kubernetes, Arc<Mutex<Vec<Progress>>>) {
    let next = Arc::new(AtomicU32::new(0));
    let service = tower::service_fn(move |_: Request<Body>| {
        let index = next.fetch_add(1, Ordering::SeqCst) as usize;
        let answer = answers.get(index).copied().unwrap_or(Ok(200));
        async move {
            match answer {
                Ok(200) => {
                    let list = r#"{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[]}"#;
                    Ok(Response::new(Body::from(list.as_bytes().to_vec())))
                }
                Ok(status) => {
                    let text = format!(r#"{{"kind":"Status","code":{status},"message":"no"}}"#);
                    let body = Body::from(text.into_bytes());
                    Ok(Response::builder().status(status).body(body).unwrap())
                }
                Err(kind) => Err(io::Error::from(kind)),
            }
        }
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let kubernetes = Kubernetes {
        client: kube::Client::new(service, "default"),
        address: Address::parse("127.0.0.1").unwrap(),
        verified: Name::parse("127.0.0.1").unwrap(),
        version: "v1.34.0".to_owned(),
        patience: Patience {
            pause: Duration::from_millis(1),
            longest_pause: Duration::from_millis(2),
            outage: Duration::from_millis(200),
            ..Patience::default()
        },
        watcher: Arc::new(move |progress| log.lock().unwrap().push(progress)),
        outages: Mutex::default(),
    };
    (kubernetes, seen)
}

async fn list(kubernetes: &Kubernetes) -> Result<usize, Error> {
    let list = kubernetes
        .call("list nodes", |client| async move {
            Api::<Node>::all(client).list(&Default::default()).await
        })
        .await?;
    Ok(list.items.len())
}

#[tokio::test]
async fn an_api_server_that_restarts_is_waited_for_and_reported() {
    let (kubernetes, seen) = scripted(vec![
        Err(io::ErrorKind::ConnectionRefused),
        Err(io::ErrorKind::UnexpectedEof),
        Ok(503),
    ]);
    assert_eq!(list(&kubernetes).await.unwrap(), 0);
    assert_eq!(kubernetes.outages(), 1);
    assert!(kubernetes.away() > Duration::ZERO);
    let seen = seen.lock().unwrap();
    let causes: Vec<&str> = seen
        .iter()
        .filter_map(|progress| match progress {
            Progress::Away { cause, .. } => Some(cause.as_str()),
            Progress::Back { .. } => None,
        })
        .collect();
    assert_eq!(
        causes,
        ["connection refused", "connection closed", "HTTP 503: no"]
    );
    assert!(matches!(seen[3], Progress::Back { attempts: 3, .. }));
}

#[tokio::test]
async fn an_outage_longer_than_allowed_ends_the_call() {
    let (kubernetes, _) = scripted(vec![Err(io::ErrorKind::ConnectionRefused); 10_000]);
    let error = list(&kubernetes).await.unwrap_err();
    assert!(matches!(error, Error::Outage { .. }), "{error}");
    assert!(error.to_string().starts_with(
        "failed to list nodes: the Kubernetes API at 127.0.0.1:6443 did not answer for"
    ));
}

#[tokio::test]
async fn a_refusal_is_not_repeated() {
    let (kubernetes, seen) = scripted(vec![Ok(403)]);
    let error = list(&kubernetes).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to list nodes");
    assert_eq!(seen.lock().unwrap().len(), 0);
    assert_eq!(kubernetes.outages(), 0);
}
