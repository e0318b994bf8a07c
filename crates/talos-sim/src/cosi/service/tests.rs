//! The State service as a client sees it, held against recorded streams (facts: api-semantics §6).

mod reading;
mod watching;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::Expect;
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::json;
use talos_api::cosi::resource as api;
use talos_api::cosi::resource::state_client::StateClient;
use talos_api::cosi::resource::state_server::StateServer;
use tonic::codegen::InterceptedService;
use tonic::{Request, Status, Streaming};

use super::{Roles, StateService};
use crate::cosi::seeds::tests::{controlplane, seeds};
use crate::store::{Draft, Store};

const LINKS: &str = "LinkStatuses.net.talos.dev";

/// Puts the roles where apid puts them.
#[derive(Clone)]
struct Caller(Roles);

impl tonic::service::Interceptor for Caller {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.extensions_mut().insert(self.0.clone());
        Ok(request)
    }
}

type Client = StateClient<InterceptedService<StateServer<StateService>, Caller>>;

fn client(store: &Store, role: &str) -> Client {
    let caller = Caller(Roles(vec![role.to_owned()]));
    let service = StateService::new(store.clone());
    StateClient::new(StateServer::with_interceptor(service, caller))
}

fn store() -> Store {
    let store = Store::new();
    seeds().install(&store, &controlplane(), &[]);
    store
}

/// A store with definitions and namespaces, and no links.
fn bare() -> Store {
    let store = Store::new();
    seeds().install(&store, &controlplane(), &[LINKS]);
    store
}

fn put(store: &Store, id: &str, mtu: u32, labels: &[(&str, &str)]) {
    let mut draft = Draft::new("network", LINKS, id, "test", json!({"mtu": mtu}));
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    draft.labels = labels.iter().map(own).collect::<BTreeMap<_, _>>();
    store.put(draft, Timestamp::now());
}

fn request(options: api::WatchOptions) -> api::WatchRequest {
    api::WatchRequest {
        namespace: "network".to_owned(),
        r#type: LINKS.to_owned(),
        id: None,
        options: Some(options),
        api_version: 1,
    }
}

fn single(id: &str, options: api::WatchOptions) -> api::WatchRequest {
    api::WatchRequest {
        id: Some(id.to_owned()),
        ..request(options)
    }
}

fn bootstrap() -> api::WatchOptions {
    api::WatchOptions {
        bootstrap_contents: true,
        ..<_>::default()
    }
}

fn resume(bookmark: &[u8]) -> api::WatchOptions {
    api::WatchOptions {
        start_from_bookmark: Some(bookmark.to_vec()),
        ..<_>::default()
    }
}

async fn watch(store: &Store, request: api::WatchRequest) -> Streaming<api::WatchResponse> {
    let answer = client(store, "os:admin").watch(request).await;
    answer.expect("a watch").into_inner()
}

/// Takes all messages that are ready, one line each; the bookmark of the last event comes along.
async fn ready(stream: &mut Streaming<api::WatchResponse>) -> (String, Vec<u8>) {
    let mut text = String::new();
    let mut bookmark = Vec::new();
    while let Some(message) = soon(stream).await {
        match message {
            Ok(message) => {
                let events = message.event.iter().map(show).collect::<Vec<_>>();
                writeln!(text, "[{}]", events.join(", ")).unwrap();
                let last = message.event.into_iter().next_back();
                bookmark = last.and_then(|event| event.bookmark).unwrap_or(bookmark);
            }
            Err(status) => writeln!(text, "{:?}: {}", status.code(), status.message()).unwrap(),
        }
    }
    (text, bookmark)
}

/// Returns the next message, unless the stream ended or has to wait.
async fn soon(
    stream: &mut Streaming<api::WatchResponse>,
) -> Option<Result<api::WatchResponse, Status>> {
    // The service runs within the poll, so what is there is there after a few of them.
    for _ in 0..10 {
        match futures::poll!(stream.next()) {
            std::task::Poll::Ready(message) => return message,
            std::task::Poll::Pending => tokio::task::yield_now().await,
        }
    }
    None
}

fn show(event: &api::Event) -> String {
    let mut text = event.event_type().as_str_name().to_owned();
    if let Some(metadata) = event.resource.as_ref().and_then(|r| r.metadata.as_ref()) {
        write!(text, " {}@{}", metadata.id, metadata.version).unwrap();
    }
    if let Some(metadata) = event.old.as_ref().and_then(|r| r.metadata.as_ref()) {
        write!(text, " old @{}", metadata.version).unwrap();
    }
    if let Some(error) = &event.error {
        write!(text, " {error}").unwrap();
    }
    if let Some(bookmark) = &event.bookmark {
        let position = i64::from_be_bytes(bookmark[8..].try_into().unwrap());
        write!(text, " #{position}").unwrap();
    }
    text
}

async fn check(store: &Store, request: api::WatchRequest, expected: Expect) -> Vec<u8> {
    let mut stream = watch(store, request).await;
    let (text, bookmark) = ready(&mut stream).await;
    expected.assert_eq(&text);
    bookmark
}

async fn refused(store: &Store, role: &str, request: api::WatchRequest) -> String {
    match client(store, role).watch(request).await {
        Ok(_) => "accepted".to_owned(),
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    }
}
