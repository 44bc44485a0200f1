//! A cache file is loaded or refused, whatever is in it (contract: CACHE-9, SEC-3, SEC-5): one
//! without the key is refused always, and one with the key gives a valid model or an error.
//!
//! The first byte says which: an even one, the rest is the file; an odd one, the next two are the
//! length of the content, and the rest is content and description of a file with a good code. What
//! loads from that is saved, and must load again as the same.

#![no_main]

use nnhal_driver::cache::{
    CHUNK_CONTEXT, CODE_CONTEXT, CacheError, CacheFiles, CacheKey, Content, FORMAT, Identity,
    ModelCache,
};
use nnhal_hal::{CacheTrust, RequestBuilder};
use libfuzzer_sys::fuzz_target;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

const KEY: [u8; 32] = [1; 32];
const TOKEN: [u8; 32] = [2; 32];

fn identity() -> Identity {
    Identity { driver: "a".into(), version: "b".into(), processor: "c".into() }
}

/// The file that somebody with the key makes of these parts.
fn sealed(content: &[u8], description: &[u8]) -> Vec<u8> {
    // As the identity above is written: each string behind its length.
    let description = [b"\x01a\x01b\x01c", description].concat();
    // At most one chunk, as the length has two bytes.
    let key = blake3::derive_key(CHUNK_CONTEXT, &KEY);
    let code = blake3::keyed_hash(&key, content);
    let codes = if content.is_empty() { &[][..] } else { &code.as_bytes()[..] };
    let length = (160 + content.len() + description.len() + codes.len()) as u64;
    let mut file = b"nnhalc\r\n".to_vec();
    file.extend(FORMAT.to_le_bytes());
    file.extend((description.len() as u32).to_le_bytes());
    file.extend((content.len() as u64).to_le_bytes());
    file.extend(length.to_le_bytes());
    file.extend(TOKEN);
    file.extend([0; 32]);
    let key = blake3::derive_key(CODE_CONTEXT, &KEY);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(&file).update(codes).update(&description);
    file.extend(blake3::keyed_hash(&key, &file).as_bytes());
    file.extend(content);
    file.extend(description);
    file.extend(codes);
    file.extend(hasher.finalize().as_bytes());
    file
}

fn file(bytes: &[u8]) -> [OwnedFd; 1] {
    let file = tempfile::tempfile().expect("a file");
    file.write_all_at(bytes, 0).expect("written");
    [file.into()]
}

fn files(model: &[OwnedFd]) -> CacheFiles<'_> {
    CacheFiles { model, data: &[], token: &TOKEN }
}

fn bytes(fd: &OwnedFd) -> Vec<u8> {
    let file = File::from(fd.try_clone().expect("a duplicate"));
    let mut bytes = vec![0; file.metadata().expect("a length").len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("read");
    bytes
}

fuzz_target!(|data: &[u8]| {
    let cache = ModelCache::new(&CacheKey::new(KEY), identity());
    let Some((kind, data)) = data.split_first() else { return };
    if kind % 2 == 0 {
        for trust in [CacheTrust::None, CacheTrust::WhileLoading, CacheTrust::WhileInUse] {
            let model = file(data);
            let loaded = cache.load_trusted(files(&model), trust, &[]);
            assert!(loaded.is_err(), "loaded without the key");
        }
        return;
    }
    let Some((length, data)) = data.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(data.len());
    let (content, description) = data.split_at(length);
    let model = file(&sealed(content, description));
    let loaded = cache.load(files(&model), &[]);
    for trust in [CacheTrust::WhileLoading, CacheTrust::WhileInUse] {
        let known = cache.load_trusted(files(&model), trust, &[]);
        assert_eq!(known.is_ok(), loaded.is_ok(), "{trust:?}");
    }
    match loaded {
        Ok(stored) => {
            let request = RequestBuilder::new().build().expect("an empty request");
            let _ = stored.interface.bind(&request, nnhal_driver::UsedFor::Execution);
            if let Content::Model(loaded) = &stored.content {
                let again = file(&[]);
                cache.save(files(&again), loaded, &stored.options, None).expect("saved");
                let first = bytes(&again[0]);
                let reloaded = cache.load(files(&again), &[]).expect("loaded again");
                let Content::Model(reloaded) = &reloaded.content else { panic!("another kind") };
                cache.save(files(&again), reloaded, &stored.options, None).expect("saved again");
                assert_eq!(bytes(&again[0]), first);
            }
        }
        Err(error) => assert!(
            !matches!(
                error,
                CacheError::Altered | CacheError::Length { .. } | CacheError::Saver { .. }
            ),
            "{error}"
        ),
    }
});
