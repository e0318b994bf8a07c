//! The wire contract: what `build.rs` encodes equals the table of facts, in both directions.

use std::collections::BTreeSet;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
};

/// Rows of the table with the columns kind, file, owner, name, number, type, label, deprecated.
const TABLE: &str = include_str!("../data/wire.tsv");

#[test]
fn every_row_of_the_table_is_in_the_descriptors_and_nothing_else() {
    let expected: BTreeSet<String> = TABLE.lines().skip(1).map(first_eight_columns).collect();
    let actual = rows_of_descriptors();

    let missing: Vec<_> = expected.difference(&actual).collect();
    let surplus: Vec<_> = actual.difference(&expected).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing in proto/: {missing:#?}\nnot in the table: {surplus:#?}"
    );
    assert_eq!(
        expected.len(),
        TABLE.lines().count() - 1,
        "a row is doubled"
    );
}

fn first_eight_columns(line: &str) -> String {
    let mut columns: Vec<&str> = line.split('\t').take(8).collect();
    columns.resize(8, "");
    columns.join("\t")
}

fn rows_of_descriptors() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(talos_api::DESCRIPTOR_SET).unwrap();
    let mut rows = Rows::default();
    for file in &set.file {
        if file.package().starts_with("google.protobuf") {
            continue;
        }
        rows.file = file.name().to_string();
        for message in &file.message_type {
            rows.message(file.package(), message);
        }
        for enumeration in &file.enum_type {
            rows.enumeration(file.package(), enumeration);
        }
        for service in &file.service {
            rows.service(file.package(), service);
        }
    }
    rows.rows
}

#[derive(Default)]
struct Rows {
    file: String,
    rows: BTreeSet<String>,
}

impl Rows {
    fn push(&mut self, kind: &str, columns: [&str; 5], deprecated: bool) {
        let deprecated = if deprecated { "deprecated" } else { "" };
        let row = format!(
            "{kind}\t{}\t{}\t{deprecated}",
            self.file,
            columns.join("\t")
        );
        assert!(self.rows.insert(row.clone()), "doubled: {row}");
    }

    fn message(&mut self, scope: &str, message: &DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        let deprecated = message.options.as_ref().is_some_and(|o| o.deprecated());
        self.push("message", [&name, "", "", "", ""], deprecated);
        for range in &message.reserved_range {
            let numbers = format!("{}-{}", range.start(), range.end() - 1);
            self.push("reserved", [&name, "", &numbers, "", ""], false);
        }
        for field in &message.field {
            let deprecated = field.options.as_ref().is_some_and(|o| o.deprecated());
            let (kind, label) = match map_type(message, field) {
                Some(map) => (map, String::new()),
                None => (type_name(field), label(message, field)),
            };
            let number = field.number().to_string();
            self.push(
                "field",
                [&name, field.name(), &number, &kind, &label],
                deprecated,
            );
        }
        for nested in &message.nested_type {
            if !nested.options.as_ref().is_some_and(|o| o.map_entry()) {
                self.message(&name, nested);
            }
        }
        for enumeration in &message.enum_type {
            self.enumeration(&name, enumeration);
        }
    }

    fn enumeration(&mut self, scope: &str, enumeration: &EnumDescriptorProto) {
        let name = format!("{scope}.{}", enumeration.name());
        let deprecated = enumeration.options.as_ref().is_some_and(|o| o.deprecated());
        self.push("enum", [&name, "", "", "", ""], deprecated);
        for value in &enumeration.value {
            let deprecated = value.options.as_ref().is_some_and(|o| o.deprecated());
            let number = value.number().to_string();
            self.push("value", [&name, value.name(), &number, "", ""], deprecated);
        }
    }

    fn service(&mut self, scope: &str, service: &ServiceDescriptorProto) {
        let name = format!("{scope}.{}", service.name());
        let deprecated = service.options.as_ref().is_some_and(|o| o.deprecated());
        self.push("service", [&name, "", "", "", ""], deprecated);
        for method in &service.method {
            let deprecated = method.options.as_ref().is_some_and(|o| o.deprecated());
            let types = format!(
                "{} -> {}",
                method.input_type().trim_start_matches('.'),
                method.output_type().trim_start_matches('.')
            );
            let label = match (method.client_streaming(), method.server_streaming()) {
                (false, false) => "",
                (true, false) => "client-stream",
                (false, true) => "server-stream",
                (true, true) => "client-stream server-stream",
            };
            self.push("rpc", [&name, method.name(), "", &types, label], deprecated);
        }
    }
}

fn map_type(message: &DescriptorProto, field: &FieldDescriptorProto) -> Option<String> {
    let entry = message.nested_type.iter().find(|nested| {
        nested.options.as_ref().is_some_and(|o| o.map_entry())
            && field.type_name().ends_with(&format!(".{}", nested.name()))
    })?;
    Some(format!(
        "map<{},{}>",
        type_name(&entry.field[0]),
        type_name(&entry.field[1])
    ))
}

fn label(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    if field.label() == Label::Repeated {
        "repeated".to_string()
    } else if field.proto3_optional() {
        "optional".to_string()
    } else if let Some(index) = field.oneof_index {
        format!("oneof {}", message.oneof_decl[index as usize].name())
    } else {
        String::new()
    }
}

fn type_name(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => field.type_name().trim_start_matches('.').to_string(),
        scalar => scalar
            .as_str_name()
            .trim_start_matches("TYPE_")
            .to_lowercase(),
    }
}
