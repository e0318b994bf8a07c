//! Get and List: access, missing things, selection.

use std::fmt::Write as _;

use expect_test::expect;
use futures::StreamExt as _;
use talos_api::cosi::resource as api;
use talos_api::cosi::resource::label_term::Operation;

use super::{LINKS, bare, client, put, store};

#[tokio::test]
async fn access_follows_types_roles_and_namespaces() {
    let store = store();
    let get = async |role: &str, namespace: &str, kind: &str, id: &str| {
        let wanted = api::GetRequest {
            namespace: namespace.to_owned(),
            r#type: kind.to_owned(),
            id: id.to_owned(),
            options: None,
        };
        match client(&store, role).get(wanted).await {
            Ok(answer) => {
                answer
                    .into_inner()
                    .resource
                    .unwrap()
                    .spec
                    .unwrap()
                    .yaml_spec
            }
            Err(status) => format!("{:?}: {}", status.code(), status.message()),
        }
    };
    let mut answers = String::new();
    for (role, namespace, kind, id) in [
        (
            "os:reader",
            "k8s",
            "Nodenames.kubernetes.talos.dev",
            "nodename",
        ),
        ("os:reader", "k8s", "Nodenames.kubernetes.talos.dev", "nope"),
        (
            "os:reader",
            "k8s",
            "KubeletSpecs.kubernetes.talos.dev",
            "nope",
        ),
        ("os:reader", "k8s", "nope", "x"),
        ("os:reader", "k8s", "nodename", "nodename"),
        ("os:reader", "k8s", "", "x"),
        (
            "os:reader",
            "nope",
            "Nodenames.kubernetes.talos.dev",
            "nodename",
        ),
        (
            "os:reader",
            "runtime",
            "Nodenames.kubernetes.talos.dev",
            "nodename",
        ),
        (
            "os:reader",
            "k8s",
            "nodenames.kubernetes.talos.dev",
            "nodename",
        ),
        (
            "os:reader",
            "network",
            "AddressSpecs.net.talos.dev",
            "lo/169.254.116.108/32",
        ),
        (
            "os:operator",
            "secrets",
            "CertSANs.secrets.talos.dev",
            "etcd",
        ),
        ("os:admin", "secrets", "CertSANs.secrets.talos.dev", "k8s"),
        (
            "os:reader",
            "config",
            "MachineConfigs.config.talos.dev",
            "v1alpha1",
        ),
    ] {
        let answer = get(role, namespace, kind, id).await;
        let first = answer.lines().next().unwrap_or_default();
        writeln!(answers, "{kind} {id} for {role}\n  {first}").unwrap();
    }
    expect![[r#"
        Nodenames.kubernetes.talos.dev nodename for os:reader
          nodename: north-cp-1
        Nodenames.kubernetes.talos.dev nope for os:reader
          NotFound: resource Nodenames.kubernetes.talos.dev(k8s/nope@undefined) doesn't exist
        KubeletSpecs.kubernetes.talos.dev nope for os:reader
          PermissionDenied: not authorized
        nope x for os:reader
          PermissionDenied: resource type "nope" is not supported
        nodename nodename for os:reader
          PermissionDenied: resource type "nodename" is not supported
         x for os:reader
          PermissionDenied: resource type "" is not supported
        Nodenames.kubernetes.talos.dev nodename for os:reader
          PermissionDenied: namespace "nope" is not supported
        Nodenames.kubernetes.talos.dev nodename for os:reader
          NotFound: resource Nodenames.kubernetes.talos.dev(runtime/nodename@undefined) doesn't exist
        nodenames.kubernetes.talos.dev nodename for os:reader
          NotFound: resource nodenames.kubernetes.talos.dev(k8s/nodename@undefined) doesn't exist
        AddressSpecs.net.talos.dev lo/169.254.116.108/32 for os:reader
          address: 169.254.116.108/32
        CertSANs.secrets.talos.dev etcd for os:operator
          PermissionDenied: not authorized
        CertSANs.secrets.talos.dev k8s for os:admin
          ips:
        MachineConfigs.config.talos.dev v1alpha1 for os:reader
          PermissionDenied: not authorized
    "#]].assert_eq(&answers);
}

#[tokio::test]
async fn every_write_is_refused() {
    let store = store();
    let mut client = client(&store, "os:admin");
    let answers = [
        client
            .create(api::CreateRequest::default())
            .await
            .unwrap_err(),
        client
            .update(api::UpdateRequest::default())
            .await
            .unwrap_err(),
        client
            .destroy(api::DestroyRequest::default())
            .await
            .unwrap_err(),
        client
            .teardown(api::TeardownRequest::default())
            .await
            .unwrap_err(),
        client
            .teardown_and_destroy(api::TeardownAndDestroyRequest::default())
            .await
            .unwrap_err(),
    ];
    for status in answers {
        assert_eq!(status.code(), tonic::Code::PermissionDenied);
        assert_eq!(status.message(), "write access is not allowed");
    }
}

#[tokio::test]
async fn lists_are_sorted_and_selected() {
    let store = bare();
    for (id, label) in ["", "1Ki", "1024", "-5", "x", "1.5", "2k", "abc", "+3", " 4"]
        .iter()
        .enumerate()
    {
        put(&store, &format!("n{id}"), 1, &[("v", label)]);
    }
    put(&store, "b", 1, &[]);
    let list = async |options: api::ListOptions| {
        let wanted = api::ListRequest {
            namespace: "network".to_owned(),
            r#type: LINKS.to_owned(),
            options: Some(options),
        };
        let answer = client(&store, "os:reader").list(wanted).await.unwrap();
        let ids = answer.into_inner().map(|answer| {
            let resource = answer.unwrap().resource.unwrap();
            resource.metadata.unwrap().id
        });
        ids.collect::<Vec<_>>().await.join(" ")
    };
    let term = |op: Operation, invert: bool, value: &[&str]| api::ListOptions {
        label_query: vec![api::LabelQuery {
            terms: vec![api::LabelTerm {
                key: "v".to_owned(),
                op: op.into(),
                value: value.iter().map(|v| (*v).to_owned()).collect(),
                invert,
            }],
        }],
        id_query: None,
    };
    let ids = api::ListOptions {
        label_query: Vec::new(),
        id_query: Some(api::IdQuery {
            regexp: "[12]".to_owned(),
        }),
    };
    for (options, expected) in [
        (<_>::default(), "b n0 n1 n2 n3 n4 n5 n6 n7 n8 n9"),
        (ids, "n1 n2"),
        (term(Operation::Exists, true, &[]), "b"),
        (term(Operation::Equal, false, &["x"]), "n4"),
        (
            term(Operation::Equal, true, &["x"]),
            "b n0 n1 n2 n3 n5 n6 n7 n8 n9",
        ),
        (term(Operation::In, false, &["x", "abc"]), "n4 n7"),
        (
            term(Operation::Lt, false, &["abc"]),
            "n0 n1 n2 n3 n5 n6 n8 n9",
        ),
        (term(Operation::Lt, true, &["abc"]), "n4 n7"),
        (term(Operation::LtNumeric, false, &["1024"]), "n3 n9"),
        (term(Operation::LtNumeric, true, &["1024"]), "n1 n2 n6"),
        (term(Operation::LteNumeric, false, &["1Ki"]), "n1 n2 n3 n9"),
        (term(Operation::LteNumeric, false, &["zz"]), ""),
    ] {
        assert_eq!(list(options).await, expected);
    }
}
