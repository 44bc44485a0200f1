//! The kernel's side: [`Process`] is this process as a binder device sees it.
//!
//! | module | contents |
//! |---|---|
//! | `system` | the device: opened, mapped, asked; the only module with `unsafe` |
//! | `protocol` | commands and returns as bytes |
//! | `locals` | objects of this process by the numbers that the kernel knows them by |
//! | `notices` | which notices of deaths the kernel was asked for |
//! | `process` | [`Process`]: what all threads share |
//! | `thread` | what one thread does: calls, and the loop of a thread that is called |
//! | `open` | [`Process::open`]: the device and the first thread |

mod locals;
mod notices;
mod open;
mod process;
mod protocol;
mod system;
mod thread;

pub use open::Options;
pub use process::Process;
