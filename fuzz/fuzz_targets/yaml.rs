//! Any text is read or refused; what was read prints as it was, and editing it never crashes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use talos_config::yaml::{Kind, Node, Stream, read_documents};

fuzz_target!(|text: &str| {
    let Ok(mut stream) = Stream::parse(text) else {
        return;
    };
    assert_eq!(stream.to_string(), text);
    for index in 0..stream.len() {
        if let Some(root) = stream.root_mut(index) {
            edit(root);
        }
    }
    // Whoever edits reads the text again and hands out none that means something else, as patches do; here it must not
    // crash. That edits mean what they say is what the property tests of talos-config show.
    let _ = read_documents(&stream.to_string());
});

/// Adds to the deepest first child, and takes the last child of the root away.
fn edit(root: &mut Node) {
    match root.kind() {
        Kind::Mapping => {
            let keys: Vec<String> = root.entries().map(|(key, _)| key.to_owned()).collect();
            if let Some(first) = keys.first().and_then(|key| root.get_mut(key)) {
                edit(first);
            }
            if let (Some(last), true) = (keys.last(), keys.len() > 1) {
                root.remove(last);
            }
            root.set("added", json!({"list": ["off", 1, "two\nlines"]}));
        }
        Kind::List => {
            if let Some(first) = root.item_mut(0) {
                edit(first);
            }
            root.push(json!("1_000"));
        }
        Kind::Null | Kind::Scalar => {}
    }
}
