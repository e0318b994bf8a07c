//! The last stage: bringing the bootstrap manifests of the nodes up to date in Kubernetes.
//!
//! `object`, `inventory`, `order`, `compare` and `ready` are pure; `apply` (server-side apply with an inventory, Talos
//! 1.13 and newer) and `replace` (whole objects, older Talos) write through `live`, and `source` reads the manifests.

mod apply;
mod compare;
mod inventory;
pub(crate) mod live;
mod object;
mod order;
mod preview;
mod prune;
mod ready;
mod reconcile;
mod replace;
mod source;

pub use preview::{Preview, preview};

use serde_json::Value;

use crate::run::Driver;
use crate::{Error, Event, ManifestMethod, ObjectChange};
use object::ObjectId;

/// Brings the manifests up to date and waits until the changed objects are ready.
pub(crate) async fn sync(driver: &Driver<'_>) -> Result<(), Error> {
    let manifests = source::current(driver).await?;
    let changed = match driver.plan.manifests.method {
        ManifestMethod::ServerSideApply => apply::apply(driver, manifests).await?,
        ManifestMethod::Replace => replace::replace(driver, manifests).await?,
    };
    reconcile::wait(driver, &changed, driver.plan.manifests.options.reconcile).await
}

/// An object of the manifests with its identity.
#[derive(Clone, Debug)]
struct Manifest {
    id: ObjectId,
    object: Value,
}

/// Tells what was done with an object, and takes it into the report.
fn tell(driver: &Driver<'_>, id: &ObjectId, change: ObjectChange, fields: Vec<String>) {
    let object = id.to_string();
    let mut report = driver.report();
    if change == ObjectChange::Unchanged {
        report.manifests_unchanged += 1;
    } else {
        report.manifests_changed.push(object.clone());
    }
    drop(report);
    driver.tell(Event::Manifest {
        object,
        change,
        fields,
    });
}

fn refuse(id: &ObjectId, problem: impl Into<String>) -> Error {
    Error::Manifest {
        object: id.to_string(),
        problem: problem.into(),
    }
}
