//! The kubeconfig that a control plane node hands out.

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::machine;
use crate::{Error, Node, Result};

/// No kubeconfig is longer than this.
const LONGEST: u64 = 16 * 1024 * 1024;

impl Node {
    /// Fetches a kubeconfig with a fresh administrator's certificate; control plane nodes only.
    ///
    /// # Errors
    /// The call gave no answer, or what came is not an archive with a kubeconfig.
    pub async fn kubeconfig(&self) -> Result<String> {
        let archive = self
            .bytes(true, async move |wire| machine(wire).kubeconfig(()).await)
            .collect()
            .await?;
        unpack(&archive).map_err(|problem| Error::Answer {
            call: Box::new(crate::Call {
                node: self.name().map(str::to_string),
                endpoint: String::new(),
                method: "machine.MachineService/Kubeconfig".to_string(),
            }),
            problem,
        })
    }
}

/// Takes the one file out of a compressed archive. Nodes do not terminate the archive: it may end right behind the
/// content, with neither padding nor closing blocks.
fn unpack(archive: &[u8]) -> Result<String, &'static str> {
    let mut tar = Vec::new();
    GzDecoder::new(archive)
        .take(LONGEST)
        .read_to_end(&mut tar)
        .map_err(|_| "is not compressed as it should be")?;
    let header = tar
        .first_chunk::<512>()
        .map(|block| tar::Header::from_byte_slice(block))
        .ok_or("is no archive")?;
    let sum_fits = header.cksum().is_ok_and(|sum| sum == sum_of(&tar[..512]));
    let size = header.entry_size().ok().filter(|_| sum_fits);
    let size = size
        .and_then(|size| usize::try_from(size).ok())
        .ok_or("is no archive")?;
    let is_kubeconfig = header.path_bytes().ends_with(b"kubeconfig");
    if !is_kubeconfig {
        return Err("is an archive without a kubeconfig");
    }
    let content = tar.get(512..).and_then(|rest| rest.get(..size));
    let content = content.ok_or("ends before the kubeconfig does")?;
    String::from_utf8(content.to_vec()).map_err(|_| "holds a kubeconfig that is not text")
}

/// Adds up the bytes of a header, its checksum field counting as spaces.
fn sum_of(header: &[u8]) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    sum(&header[..148]) + 8 * 32 + sum(&header[156..])
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn packed(name: &str, content: &[u8], terminated: bool) -> Vec<u8> {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).unwrap();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_cksum();
        let mut tar = header.as_bytes().to_vec();
        tar.extend(content);
        if terminated {
            tar.resize(tar.len().next_multiple_of(512) + 1024, 0);
        }
        compressed(&tar)
    }

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn an_archive_may_lack_its_end() {
        for terminated in [false, true] {
            let archive = packed("kubeconfig", b"kind: Config\n", terminated);
            assert_eq!(unpack(&archive).unwrap(), "kind: Config\n");
        }
    }

    #[test]
    fn what_is_no_kubeconfig_says_why() {
        assert_eq!(unpack(b"plain"), Err("is not compressed as it should be"));
        assert_eq!(unpack(&compressed(b"short")), Err("is no archive"));
        assert_eq!(unpack(&compressed(&[0; 512])), Err("is no archive"));
        let other = packed("other", b"", true);
        assert_eq!(unpack(&other), Err("is an archive without a kubeconfig"));
        let binary = packed("kubeconfig", &[0xff], true);
        assert_eq!(unpack(&binary), Err("holds a kubeconfig that is not text"));
    }

    proptest! {
        #[test]
        fn no_archive_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1200)) {
            let _ = unpack(&bytes);
            let _ = unpack(&compressed(&bytes));
        }

        #[test]
        fn a_cut_archive_is_an_error_and_never_half_a_file(cut in 1usize..13) {
            let mut header = tar::Header::new_ustar();
            header.set_path("kubeconfig").unwrap();
            header.set_size(13);
            header.set_cksum();
            let mut tar = header.as_bytes().to_vec();
            tar.extend(&b"kind: Config\n"[..13 - cut]);
            prop_assert_eq!(unpack(&compressed(&tar)), Err("ends before the kubeconfig does"));
        }
    }
}
