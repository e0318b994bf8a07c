//! When a component counts as upgraded.

use std::fmt;

use talos_kube::ComponentPod;

/// The annotation with the version of the component's configuration.
const CONFIG: &str = "config-version";

/// What a static pod was before its configuration was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    uid: String,
    config: Option<String>,
}

impl From<&ComponentPod> for Mark {
    fn from(pod: &ComponentPod) -> Self {
        Self {
            uid: pod.uid.clone(),
            config: pod.annotations.get(CONFIG).cloned(),
        }
    }
}

/// How far a static pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// Kubernetes has no pod of it on the node.
    Missing,
    /// The pod is still that of the old configuration.
    Old { image: String },
    /// The new pod is there, but not ready.
    NotReady,
    /// The new pod is ready.
    Ready,
}

impl fmt::Display for PodState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str("there is no pod"),
            Self::Old { image } => write!(out, "the pod still runs {image}"),
            Self::NotReady => out.write_str("the new pod is not ready"),
            Self::Ready => out.write_str("the new pod is ready"),
        }
    }
}

/// Judges a static pod by the image it was specified with, by the change of its configuration and by its readiness.
///
/// The status is no proof: after an API server came back, the old mirror pod shows the new container image and is
/// ready for up to a minute. The annotation's number is only compared with what it was before the write, never with
/// the number of a resource: the two counters may drift apart for good.
pub(crate) fn judge(pod: Option<&ComponentPod>, image: &str, before: Option<&Mark>) -> PodState {
    let Some(pod) = pod else {
        return PodState::Missing;
    };
    let now = Mark::from(pod);
    let changed = before.is_none_or(|before| match (&before.config, &now.config) {
        (None, None) => before.uid != now.uid,
        (then, now) => then != now,
    });
    if pod.image != image || !changed || pod.deleting {
        return PodState::Old {
            image: pod.image.clone(),
        };
    }
    if pod.ready {
        PodState::Ready
    } else {
        PodState::NotReady
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use talos_kube::Component;

    use super::*;

    const OLD: &str = "registry.k8s.io/kube-apiserver:v1.33.4";
    const NEW: &str = "registry.k8s.io/kube-apiserver:v1.34.0";

    fn pod(image: &str, uid: &str, config: &str, ready: bool) -> ComponentPod {
        ComponentPod {
            name: "kube-apiserver-cp-1".to_owned(),
            uid: uid.to_owned(),
            component: Component::KubeApiserver,
            node: Some("cp-1".to_owned()),
            host_addresses: Vec::new(),
            image: image.to_owned(),
            annotations: BTreeMap::from([(CONFIG.to_owned(), config.to_owned())]),
            ready,
            deleting: false,
        }
    }

    fn check(pod: &ComponentPod, before: Option<&ComponentPod>, expected: &PodState) {
        let mark = before.map(Mark::from);
        assert_eq!(judge(Some(pod), NEW, mark.as_ref()), *expected);
    }

    #[test]
    fn the_old_mirror_pod_is_not_taken_for_the_new_one() {
        let old = pod(OLD, "a", "2", true);
        let image = OLD.to_owned();
        check(&old, Some(&old), &PodState::Old { image });
        // The same annotation with the new image: the kubelet has not replaced the pod yet.
        let image = NEW.to_owned();
        check(
            &pod(NEW, "a", "2", true),
            Some(&old),
            &PodState::Old { image },
        );
    }

    #[test]
    fn the_annotation_only_has_to_change() {
        let old = pod(OLD, "a", "1", true);
        // The component's configuration may be at version 3 by now; the annotation is never compared with that.
        check(&pod(NEW, "b", "2", true), Some(&old), &PodState::Ready);
        check(&pod(NEW, "b", "2", false), Some(&old), &PodState::NotReady);
        // A reboot in between starts the count anew.
        let old = pod(OLD, "a", "7", true);
        check(&pod(NEW, "b", "1", true), Some(&old), &PodState::Ready);
    }

    #[test]
    fn without_a_write_the_image_and_readiness_decide() {
        check(&pod(NEW, "a", "2", true), None, &PodState::Ready);
        let image = OLD.to_owned();
        check(&pod(OLD, "a", "2", true), None, &PodState::Old { image });
        assert_eq!(judge(None, NEW, None), PodState::Missing);
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_old() {
        let mut deleted = pod(NEW, "b", "3", true);
        deleted.deleting = true;
        let image = NEW.to_owned();
        check(
            &deleted,
            Some(&pod(OLD, "a", "2", true)),
            &PodState::Old { image },
        );
    }
}
