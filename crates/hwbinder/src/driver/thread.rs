//! What one thread does with binder: it calls, and it is called.

use super::process::{Process, Received};
use super::protocol::{
    ACCEPT_DESCRIPTORS, ONE_WAY, Return, STATUS_CODE, Transaction, command, returns,
};
use crate::base;
use crate::error::{Error, status};
use crate::object::{Binder, CallError, Caller, Carrier, Incoming, Reader, Remote, Writer};
use crate::parcel::{Number, Outgoing};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of returns that are taken at a time.
const RETURNS: usize = 512;

/// Calls within calls, on one thread. Ours need two.
const MOST_NESTED: u32 = 16;

thread_local! {
    /// The devices that this thread has used, each of which gets to know when it ends.
    static USED: RefCell<Vec<Leave>> = const { RefCell::new(Vec::new()) };
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// Tells the kernel that the thread ends.
struct Leave(Arc<Process>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.device.exit_thread();
    }
}

fn note_use(process: &Arc<Process>) {
    // While the thread ends there is nothing to note.
    let _ = USED.try_with(|used| {
        let mut used = used.borrow_mut();
        if !used.iter().any(|one| Arc::ptr_eq(&one.0, process)) {
            used.push(Leave(Arc::clone(process)));
        }
    });
}

/// Starts a thread that is called.
pub(super) fn start(process: &Arc<Process>, enter: u32) -> Result<(), Error> {
    let own = Arc::clone(process);
    process.threads.fetch_add(1, Ordering::Relaxed);
    let number = process.threads.load(Ordering::Relaxed);
    let thread = std::thread::Builder::new().name(format!("hwbinder-{number}"));
    let started = thread.spawn(move || {
        note_use(&own);
        if let Err(error) = serve(&own, enter) {
            tracing::error!(%error, "a thread has left binder");
        }
        own.threads.fetch_sub(1, Ordering::Relaxed);
    });
    started.map(drop).map_err(|error| {
        process.threads.fetch_sub(1, Ordering::Relaxed);
        Error::system("clone", error)
    })
}

/// Does what others ask for, for ever.
fn serve(process: &Arc<Process>, enter: u32) -> Result<(), Error> {
    process.command(enter, &[]);
    loop {
        for returned in take(process)? {
            handle(process, returned);
        }
    }
}

fn take(process: &Process) -> Result<Vec<Return>, Error> {
    let mut buffer = [0; RETURNS];
    let taken = process.device.exchange(&[], &mut buffer);
    let taken = taken.map_err(|error| Error::system("BINDER_WRITE_READ", error))?;
    Ok(returns(&buffer[..taken]))
}

/// Deals with what is not the answer to this thread's own call.
fn handle(process: &Arc<Process>, returned: Return) {
    let pair = |id: u64, cookie: u64| [id.to_le_bytes(), cookie.to_le_bytes()].concat();
    match returned {
        Return::Transaction(transaction) => called(process, transaction),
        Return::Increfs { id, cookie } => process.command(command::INCREFS_DONE, &pair(id, cookie)),
        Return::Acquire { id, cookie } => {
            process.locals.acquire_number(id);
            process.command(command::ACQUIRE_DONE, &pair(id, cookie));
        }
        Return::Release { id } => process.locals.release(id),
        Return::DeadBinder { cookie } => process.died(cookie),
        Return::SpawnLooper => {
            if process.threads.load(Ordering::Relaxed) < process.most_threads
                && let Err(error) = start(process, command::REGISTER_LOOPER)
            {
                tracing::warn!(%error, "no thread could be added");
            }
        }
        Return::Reply(transaction) => {
            // No one waits for it; its buffer is given back.
            drop(Received::new(process, transaction));
        }
        Return::Error(code) => tracing::warn!(code, "binder returned an error"),
        Return::Complete | Return::DeadReply | Return::FailedReply | Return::Nothing => {}
    }
}

/// A parcel on its way, whose objects are known by number until it has arrived.
struct Sent {
    process: Arc<Process>,
    numbers: Vec<u64>,
    parcel: Outgoing<Binder>,
    flags: u32,
}

impl Sent {
    fn new(process: &Arc<Process>, writer: Writer, flags: u32) -> Self {
        let mut numbers = Vec::new();
        let flags = if writer.is_status() { flags | STATUS_CODE } else { flags };
        let parcel = writer.finish(|binder| match binder {
            Binder::Local(object) => {
                let id = process.locals.acquire(object);
                numbers.push(id);
                Number::Local(id)
            }
            Binder::Remote(remote) => Number::Remote(remote.handle()),
        });
        Self { process: Arc::clone(process), numbers, parcel, flags }
    }

    fn size(&self) -> u64 {
        self.parcel.buffers_size.saturating_add(self.parcel.data.len() as u64)
    }

    /// The command that sends it.
    fn command(&self, code: u32, target: u64, method: u32) -> Vec<u8> {
        let Outgoing { data, offsets, buffers_size, .. } = &self.parcel;
        let transaction = Transaction {
            target,
            code: method,
            flags: self.flags,
            data_size: data.len() as u64,
            offsets_size: 8 * offsets.len() as u64,
            data: data.as_ptr().addr() as u64,
            offsets: offsets.as_ptr().addr() as u64,
            ..Transaction::default()
        };
        let mut command = code.to_le_bytes().to_vec();
        command.extend(transaction.bytes(*buffers_size));
        command
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        for id in &self.numbers {
            self.process.locals.release(*id);
        }
    }
}

impl Carrier for Process {
    fn call(
        self: Arc<Self>,
        handle: u32,
        code: u32,
        request: Writer,
    ) -> Result<Box<dyn Incoming>, Error> {
        Ok(Box::new(call(&self, handle, code, request, false)?.ok_or(Error::Dead)?))
    }

    fn call_one_way(self: Arc<Self>, handle: u32, code: u32, request: Writer) -> Result<(), Error> {
        call(&self, handle, code, request, true).map(|_| ())
    }

    fn watch(&self, remote: &Arc<Remote>) -> u64 {
        self.request_death_notice(remote)
    }

    fn forget(&self, remote: &Remote) {
        self.release(remote);
    }
}

/// Calls a method and returns the reply; one that is one way has none.
fn call(
    process: &Arc<Process>,
    handle: u32,
    code: u32,
    request: Writer,
    one_way: bool,
) -> Result<Option<Received>, Error> {
    note_use(process);
    let flags = if one_way { ACCEPT_DESCRIPTORS | ONE_WAY } else { ACCEPT_DESCRIPTORS };
    let sent = Sent::new(process, request, flags);
    let command = sent.command(command::TRANSACTION_SG, handle.into(), code);
    let written = process.device.exchange(&command, &mut []);
    written.map_err(|error| Error::system("BINDER_WRITE_READ", error))?;
    wait(process, &sent, one_way)
}

/// Waits for the end of what was sent, and is called meanwhile.
fn wait(
    process: &Arc<Process>,
    sent: &Sent,
    until_complete: bool,
) -> Result<Option<Received>, Error> {
    loop {
        let mut outcome = None;
        for returned in take(process)? {
            match returned {
                Return::Complete if until_complete => outcome = Some(Ok(None)),
                Return::Reply(transaction) if !until_complete => {
                    outcome = Some(Ok(Some(Received::new(process, transaction))));
                }
                Return::DeadReply => outcome = Some(Err(Error::Dead)),
                Return::FailedReply => outcome = Some(Err(Error::Refused { bytes: sent.size() })),
                Return::Error(code) => outcome = Some(Err(Error::system("binder", code))),
                other => handle(process, other),
            }
        }
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
}

/// Does what another process asks for, and answers.
fn called(process: &Arc<Process>, transaction: Transaction) {
    let one_way = transaction.flags & ONE_WAY != 0;
    let received = Received::new(process, transaction);
    let nested = NESTED.get();
    NESTED.set(nested + 1);
    let answered = if nested < MOST_NESTED {
        catch_unwind(AssertUnwindSafe(|| answer(process, &received, one_way)))
    } else {
        Ok(Err(CallError::Status(status::NO_MEMORY)))
    };
    NESTED.set(nested);
    drop(received);
    if one_way {
        return;
    }
    let reply = match answered {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => error.reply(),
        Err(_) => CallError::Status(status::UNKNOWN_ERROR).reply(),
    };
    let sent = Sent::new(process, reply, 0);
    if let Err(error) = reply_with(process, &sent) {
        tracing::debug!(%error, "a reply was not delivered");
    }
}

fn reply_with(process: &Arc<Process>, sent: &Sent) -> Result<(), Error> {
    let command = sent.command(command::REPLY_SG, 0, 0);
    let written = process.device.exchange(&command, &mut []);
    written.map_err(|error| Error::system("BINDER_WRITE_READ", error))?;
    wait(process, sent, true).map(|_| ())
}

fn answer(process: &Arc<Process>, received: &Received, one_way: bool) -> Result<Writer, CallError> {
    let Transaction { target, code, process: caller, user, .. } = received.transaction;
    let object = process.locals.get(target).ok_or(CallError::Status(status::DEAD_OBJECT))?;
    let caller = Caller { process: caller, user };
    let parcel = received.parcel()?;
    base::answer(&*object, code, &mut Reader::new(&parcel), caller, one_way)
}
