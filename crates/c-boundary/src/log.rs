//! Log lines on standard error, as far as `NNHAL_LOG` asks for them.

use nnhal_settings::{LOG, SettingError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write;
use std::sync::LazyLock;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Writes log lines from now on, if they are asked for. A program in Rust that has a subscriber of its
/// own keeps it.
///
/// # Errors
/// `NNHAL_LOG` makes no sense.
pub fn begin() -> Result<(), SettingError> {
    static BEGUN: LazyLock<Result<(), SettingError>> = LazyLock::new(|| {
        let Some(wanted) = nnhal_settings::log()? else { return Ok(()) };
        let filter: Targets =
            wanted.parse().map_err(|error| LOG.wrong(&wanted, Some(format!("{error}"))))?;
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(|| StandardError)
            .log_internal_errors(false)
            .with_span_events(FmtSpan::CLOSE);
        let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
        Ok(())
    });
    BEGUN.clone()
}

/// Writes a sentence of the library to standard error.
pub fn say(sentence: &str) {
    say_line(&format!("nnhal: {sentence}"));
}

/// Writes a line to standard error.
pub fn say_line(line: &str) {
    let _ = StandardError.write_all(format!("{line}\n").as_bytes());
}

/// Standard error. If it is full or closed, that is no error of the program that has it; and writing
/// to a pipe without a reader would end that program by a signal.
struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut stderr = std::io::stderr().lock();
        let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
        let found = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let is_useless = asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP);
        if found.is_ok() && !is_useless {
            let _ = stderr.write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
