//! What is no file: pipes, devices, and what the process has open.

use std::path::Path;

use super::{send, unwritable};
use crate::error::Error;
use crate::session::Session;

/// Writes into what is no file. For the reader of a pipe it waits, and says so.
#[cfg(unix)]
pub(super) fn stream(
    path: &Path,
    target: &Path,
    content: &[u8],
    session: &mut Session,
) -> Result<(), Error> {
    use std::os::unix::fs::FileTypeExt;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::unix::pipe;
    /// What the system says of a pipe without a reader: there is no such device.
    const NO_READER: i32 = 6;
    const PAUSE: Duration = Duration::from_millis(50);
    let is_pipe = std::fs::metadata(target).is_ok_and(|found| found.file_type().is_fifo());
    if !is_pipe {
        return send(target, content).map_err(|error| unwritable(path, &error));
    }
    let runtime = session.runtime()?;
    let output = &mut session.output;
    runtime.run(async {
        let mut says = true;
        let mut sender = loop {
            match pipe::OpenOptions::new().open_sender(target) {
                Ok(sender) => break sender,
                Err(error) if error.raw_os_error() == Some(NO_READER) => {
                    if std::mem::take(&mut says) {
                        let name = path.display();
                        output.note(&format!(
                            "{name} is a pipe: waiting for somebody to read it"
                        ));
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(unwritable(path, &error)),
            }
        };
        let sent = sender.write_all(content).await;
        sent.map_err(|error| unwritable(path, &error))
    })
}

#[cfg(not(unix))]
pub(super) fn stream(
    path: &Path,
    target: &Path,
    content: &[u8],
    _: &mut Session,
) -> Result<(), Error> {
    send(target, content).map_err(|error| unwritable(path, &error))
}
