//! Sections of the main document that the target version has documents for.

use crate::facts::DEPRECATED;
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;

/// Notes the sections of the main document.
pub(super) fn check(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    for deprecated in DEPRECATED.iter().filter(|part| !part.kinds.is_empty()) {
        let (minor, kinds) = (deprecated.since, deprecated.kinds);
        let section = root.fields(deprecated.path);
        let scalar = section.node().as_scalar().is_some();
        let used = match scalar {
            true => !section.is_blank(),
            false => section.len() > 0,
        };
        if used && context.at_least(minor.into()) {
            sink.note(
                "newer-way",
                &section,
                format!("since Talos 1.{minor} there is {kinds} for this"),
            )
            .hint("`ichor machineconfig migrate` moves it");
        }
    }
}
