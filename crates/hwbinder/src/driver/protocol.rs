//! Commands to the kernel and its returns, as bytes.

/// Commands.
pub(super) mod command {
    pub(crate) const FREE_BUFFER: u32 = 0x4008_6303;
    pub(crate) const ACQUIRE: u32 = 0x4004_6305;
    pub(crate) const RELEASE: u32 = 0x4004_6306;
    pub(crate) const INCREFS_DONE: u32 = 0x4010_6308;
    pub(crate) const ACQUIRE_DONE: u32 = 0x4010_6309;
    pub(crate) const REGISTER_LOOPER: u32 = 0x630b;
    pub(crate) const ENTER_LOOPER: u32 = 0x630c;
    pub(crate) const REQUEST_DEATH_NOTIFICATION: u32 = 0x400c_630e;
    pub(crate) const CLEAR_DEATH_NOTIFICATION: u32 = 0x400c_630f;
    pub(crate) const DEAD_BINDER_DONE: u32 = 0x4008_6310;
    pub(crate) const TRANSACTION_SG: u32 = 0x4048_6311;
    pub(crate) const REPLY_SG: u32 = 0x4048_6312;
}

const ERROR: u32 = 0x8004_7200;
const TRANSACTION: u32 = 0x8040_7202;
const TRANSACTION_SEC_CTX: u32 = 0x8048_7202;
const REPLY: u32 = 0x8040_7203;
const DEAD_REPLY: u32 = 0x7205;
const TRANSACTION_COMPLETE: u32 = 0x7206;
const INCREFS: u32 = 0x8010_7207;
const ACQUIRE: u32 = 0x8010_7208;
const RELEASE: u32 = 0x8010_7209;
const DECREFS: u32 = 0x8010_720a;
const SPAWN_LOOPER: u32 = 0x720d;
const DEAD_BINDER: u32 = 0x8008_720f;
const FAILED_REPLY: u32 = 0x7211;
const FROZEN_REPLY: u32 = 0x7212;

/// The call is one way.
pub(super) const ONE_WAY: u32 = 0x01;
/// The reply is a status and nothing else.
pub(super) const STATUS_CODE: u32 = 0x08;
/// The reply may have descriptors.
pub(super) const ACCEPT_DESCRIPTORS: u32 = 0x10;

/// `binder_transaction_data`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Transaction {
    /// The handle, or the number of an object of this process.
    pub(super) target: u64,
    pub(super) cookie: u64,
    pub(super) code: u32,
    pub(super) flags: u32,
    pub(super) process: i32,
    pub(super) user: u32,
    pub(super) data_size: u64,
    pub(super) offsets_size: u64,
    pub(super) data: u64,
    pub(super) offsets: u64,
}

impl Transaction {
    /// `binder_transaction_data_sg`.
    pub(super) fn bytes(&self, buffers_size: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(72);
        bytes.extend(self.target.to_le_bytes());
        bytes.extend(self.cookie.to_le_bytes());
        bytes.extend(self.code.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend(self.process.to_le_bytes());
        bytes.extend(self.user.to_le_bytes());
        for word in [self.data_size, self.offsets_size, self.data, self.offsets, buffers_size] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Self {
        let long = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let short = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        Self {
            target: long(0),
            cookie: long(8),
            code: short(16),
            flags: short(20),
            process: short(24).cast_signed(),
            user: short(28),
            data_size: long(32),
            offsets_size: long(40),
            data: long(48),
            offsets: long(56),
        }
    }
}

/// What the kernel returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Return {
    Transaction(Transaction),
    Reply(Transaction),
    Complete,
    DeadReply,
    FailedReply,
    Increfs {
        id: u64,
        cookie: u64,
    },
    Acquire {
        id: u64,
        cookie: u64,
    },
    Release {
        id: u64,
    },
    DeadBinder {
        cookie: u64,
    },
    SpawnLooper,
    Error(i32),
    /// What needs nothing to be done.
    Nothing,
}

/// The returns in a buffer that the kernel has filled. The length of each is part of its number, so that those
/// of newer kernels are passed over.
pub(super) fn returns(mut bytes: &[u8]) -> Vec<Return> {
    let mut returns = Vec::new();
    while let Some((code, rest)) = bytes.split_first_chunk::<4>() {
        let code = u32::from_le_bytes(*code);
        let size = ((code >> 16) & 0x3fff) as usize;
        let Some((content, rest)) = rest.split_at_checked(size) else { break };
        bytes = rest;
        let long = |at: usize| {
            let bytes = content.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        returns.push(match code {
            TRANSACTION | TRANSACTION_SEC_CTX => Return::Transaction(Transaction::parse(content)),
            REPLY => Return::Reply(Transaction::parse(content)),
            TRANSACTION_COMPLETE => Return::Complete,
            DEAD_REPLY => Return::DeadReply,
            FAILED_REPLY | FROZEN_REPLY => Return::FailedReply,
            INCREFS => Return::Increfs { id: long(0), cookie: long(8) },
            ACQUIRE => Return::Acquire { id: long(0), cookie: long(8) },
            RELEASE => Return::Release { id: long(0) },
            DEAD_BINDER => Return::DeadBinder { cookie: long(0) },
            SPAWN_LOOPER => Return::SpawnLooper,
            ERROR => {
                Return::Error(i32::from_le_bytes([content[0], content[1], content[2], content[3]]))
            }
            DECREFS => Return::Nothing,
            _ => Return::Nothing,
        });
    }
    returns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_are_split_and_unknown_ones_passed_over() {
        let mut bytes = Vec::new();
        bytes.extend(0x720cu32.to_le_bytes());
        bytes.extend(0x8008_72ffu32.to_le_bytes());
        bytes.extend(7u64.to_le_bytes());
        bytes.extend(DEAD_BINDER.to_le_bytes());
        bytes.extend(9u64.to_le_bytes());
        let transaction = Transaction { target: 1, code: 4, flags: 0x10, ..Transaction::default() };
        bytes.extend(TRANSACTION.to_le_bytes());
        bytes.extend(&transaction.bytes(0)[..64]);
        let expected = [
            Return::Nothing,
            Return::Nothing,
            Return::DeadBinder { cookie: 9 },
            Return::Transaction(transaction),
        ];
        assert_eq!(returns(&bytes), expected);
        // What is cut is not read.
        assert_eq!(returns(&bytes[..bytes.len() - 1]), expected[..3]);
    }
}
