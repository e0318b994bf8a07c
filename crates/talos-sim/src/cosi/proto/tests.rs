//! The encoder held against encodings of a real machine, and against all recorded instances.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use expect_test::expect;
use proptest::proptest;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor};
use serde_json::{Value, json};

use super::{POOL, by_name, definitions, encode, flat, texts};
use crate::cosi::seeds::tests::installed;
use crate::cosi::yaml::tests::json_values;
use crate::cosi::{NAMESPACES, yaml};
use crate::store::{Resource, Store};

#[test]
fn specs_encode_as_on_a_real_machine() {
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("../../../data/cosi/encodings.json")).unwrap();
    assert_eq!(recorded.len(), 8);
    for example in &recorded {
        let kind = example["type"].as_str().unwrap();
        let text = example["yaml"].as_str().unwrap();
        let spec: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(yaml::render(&spec), text, "{kind}");

        let name = definitions::proto_message(kind).unwrap();
        let descriptor = POOL.get_message_by_name(name).unwrap();
        let real = BASE64_STANDARD
            .decode(example["proto"].as_str().unwrap())
            .unwrap();
        let real = DynamicMessage::decode(descriptor.clone(), real.as_slice()).expect(kind);
        let ours = encode(kind, &spec);
        let ours = DynamicMessage::decode(descriptor, ours.as_slice()).unwrap();
        assert_eq!(ours, real, "{kind}");
    }
}

/// Lists keys of recorded specs that find no field, and the types without a protobuf form.
#[test]
fn recorded_specs_have_a_field_for_every_key() {
    let mut lost = BTreeSet::new();
    let mut without = BTreeSet::new();
    for resource in recorded() {
        let kind = resource.metadata.kind.to_string();
        let Some(name) = definitions::proto_message(&kind) else {
            without.insert(kind);
            continue;
        };
        let descriptor = POOL.get_message_by_name(name).unwrap();
        unmatched(&descriptor, resource.spec.value(), &mut lost);
    }
    // Selectors are compiled expressions in protobuf.
    expect![[r#"
        LocatorSpec.match = "volume.partition_label == \"META\" && volume.name in [\"\", \"talosmeta\"] && volume.size == 1048576u"
    "#]].assert_eq(&lines(lost));
    expect![[r#"
        AcquireConfigStatuses.v1alpha1.talos.dev
        DNSUpstreams.net.talos.dev
        KubeletLifecycles.kubernetes.talos.dev
        PCRStatuses.hardware.talos.dev
        VolumeLifecycles.block.talos.dev
    "#]]
    .assert_eq(&lines(without));
}

#[test]
fn every_defined_message_is_in_the_contract() {
    let named = definitions::all()
        .iter()
        .filter_map(|d| definitions::proto_message(&d.kind));
    let (known, unknown): (Vec<_>, Vec<_>) =
        named.partition(|name| POOL.get_message_by_name(name).is_some());
    assert_eq!((known.len(), unknown), (158, Vec::new()));
}

#[test]
fn texts_become_numbers_and_messages() {
    let check = |kind: &str, spec: Value, expected: &str| {
        let name = definitions::proto_message(kind).unwrap();
        let descriptor = POOL.get_message_by_name(name).unwrap();
        let message = DynamicMessage::decode(descriptor, encode(kind, &spec).as_slice()).unwrap();
        let fields = message.fields().map(|(field, value)| {
            let message = value.as_message();
            let inner = message.map(|m| m.fields().map(|(f, v)| format!("{}:{v}", f.name())));
            let shown = inner.map(|i| i.collect::<Vec<_>>().join(","));
            format!("{}={}", field.name(), shown.unwrap_or(value.to_string()))
        });
        assert_eq!(fields.collect::<Vec<_>>().join(" "), expected);
    };
    check(
        "MachineTypes.config.talos.dev",
        json!("controlplane"),
        "machine_type=2",
    );
    let (kind, spec) = (
        "AddressStatuses.net.talos.dev",
        json!({"address": "10.5.0.2/24", "flags": "permanent|temporary", "scope": "host"}),
    );
    check(
        kind,
        spec,
        "address=ip:\"\\n\\005\\000\\002\",prefix_length:24 scope=254 flags=129",
    );
    let (kind, spec) = (
        "RoutingRuleStatuses.net.talos.dev",
        json!({"family": "Family(128)"}),
    );
    check(kind, spec, "family=128");
}

proptest! {
    #[test]
    fn any_value_encodes(value in json_values(), index in 0usize..167) {
        let kind = &definitions::all()[index].kind;
        encode(kind, &value);
    }
}

/// All instances of a control plane and of a worker.
fn recorded() -> Vec<Arc<Resource>> {
    let namespaces = |store: &Store| {
        let listed = store.list("meta", NAMESPACES);
        listed.into_iter().map(|r| r.metadata.id.to_string())
    };
    let stores = [0, 2].map(installed);
    let all = stores.iter().flat_map(|store| {
        namespaces(store).flat_map(move |namespace| {
            let kinds = definitions::all().iter();
            kinds.flat_map(move |d| store.list(&namespace, &d.kind))
        })
    });
    all.collect()
}

fn lines(items: BTreeSet<String>) -> String {
    items.into_iter().map(|item| item + "\n").collect()
}

fn unmatched(descriptor: &MessageDescriptor, value: &Value, lost: &mut BTreeSet<String>) {
    if texts::well_known(descriptor, value).is_some() {
        return;
    }
    let Some(map) = value.as_object() else { return };
    let fields: Vec<_> = descriptor.fields().collect();
    let keys = by_name(descriptor, map);
    for key in keys.keys() {
        let field = fields.iter().find(|field| flat(field.name()) == *key);
        let Some(field) = field else {
            let stands_for_all = fields.len() == 1 && super::any(&fields[0], value).is_some();
            if !stands_for_all {
                lost.insert(format!("{}: {key} {}", descriptor.name(), keys[key]));
            }
            continue;
        };
        let found = super::any(field, keys[key]);
        if found.is_none() && !keys[key].is_null() && keys[key] != "" {
            lost.insert(format!("{}.{key} = {}", descriptor.name(), keys[key]));
        }
        if let Kind::Message(inner) = field.kind()
            && !field.is_map()
        {
            match keys[key] {
                Value::Array(items) => items.iter().for_each(|item| unmatched(&inner, item, lost)),
                Value::Object(_) if field.is_list() => {}
                single => unmatched(&inner, single, lost),
            }
        }
    }
}
