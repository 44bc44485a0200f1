//! Compilation caching (contract: section 6).

use super::models::{addition, execute, sum, sum_request};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::{GeneralFailure, InvalidArgument};
use nnhal_hal::{CacheToken, Device, HalVersion, PrepareOptions, PreparedModel, RequestBuilder};
use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["CACHE-2", "CACHE-3", "CACHE-5", "CACHE-15"],
        name: "what was saved loads and computes the same",
        run: Run::Device(there_and_back),
    },
    Check {
        ids: &["CACHE-9", "SEC-5"],
        name: "a model cache with one bit changed, or a byte more, does not load",
        run: Run::Device(tampering),
    },
    Check {
        ids: &["CACHE-10"],
        name: "under another token nothing loads",
        run: Run::Device(other_token),
    },
    Check {
        ids: &["CACHE-6", "CACHE-7", "CACHE-8"],
        name: "wrong files do not load",
        run: Run::Device(wrong_files),
    },
    Check {
        ids: &["CACHE-12"],
        name: "a damaged data cache does no harm",
        run: Run::Device(damaged_data),
    },
];

const TOKEN: CacheToken = [0x5A; 32];
/// Places at which a file is damaged: all of a small one.
const PLACES: u64 = 400;

fn own(error: impl std::fmt::Display) -> Violation {
    Violation(format!("the check's own file: {error}"))
}

/// The client's files, in a folder of their own.
struct Files {
    folder: tempfile::TempDir,
    model: u32,
    data: u32,
}

impl Files {
    /// `None` if the device does not cache.
    fn of(device: &dyn Device) -> Result<Option<Self>, Violation> {
        let needed = device.cache_files_needed();
        if (needed.model, needed.data) == (0, 0) || device.version() < HalVersion::V1_2 {
            return Ok(None);
        }
        let folder = tempfile::tempdir().map_err(own)?;
        let files = Self { folder, model: needed.model, data: needed.data };
        // What is there already must not matter (CACHE-3).
        for path in files.paths("model", files.model).chain(files.paths("data", files.data)) {
            std::fs::write(path, [1; 5000]).map_err(own)?;
        }
        Ok(Some(files))
    }

    fn paths(&self, kind: &str, count: u32) -> impl Iterator<Item = PathBuf> {
        (0..count).map(move |index| self.folder.path().join(format!("{kind}{index}")))
    }

    fn open(&self, kind: &str, options: &OpenOptions) -> Result<Vec<OwnedFd>, Violation> {
        let count = if kind == "model" { self.model } else { self.data };
        let open = |path: PathBuf| options.open(path).map(OwnedFd::from).map_err(own);
        self.paths(kind, count).map(open).collect()
    }

    fn open_both(&self, options: &OpenOptions) -> Result<[Vec<OwnedFd>; 2], Violation> {
        Ok([self.open("model", options)?, self.open("data", options)?])
    }

    fn save(&self, device: &dyn Device) -> Result<(), Violation> {
        let [model_cache, data_cache] = self.open_both(&read_write())?;
        let options =
            PrepareOptions { model_cache, data_cache, token: TOKEN, ..PrepareOptions::default() };
        expect_sum(&*device.prepare_model(&addition([2, 2]), device.version(), options)?)
    }

    fn load(
        &self,
        device: &dyn Device,
    ) -> Result<nnhal_hal::Result<Arc<dyn PreparedModel>>, Violation> {
        let [model, data] = self.open_both(&read_write())?;
        Ok(device.prepare_model_from_cache(loading(model, data, TOKEN)))
    }
}

fn loading(
    model_cache: Vec<OwnedFd>,
    data_cache: Vec<OwnedFd>,
    token: CacheToken,
) -> PrepareOptions {
    PrepareOptions { model_cache, data_cache, token, ..PrepareOptions::default() }
}

fn read_write() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

fn expect_sum(prepared: &dyn PreparedModel) -> Result<(), Violation> {
    let request = sum_request()?;
    execute(prepared, &request)?;
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == sum(), "the sum is {found:?}");
    Ok(())
}

fn not_offered() -> Verdict {
    Verdict::NotOffered("caching".into())
}

fn there_and_back(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(&**device)? else { return Ok(not_offered()) };
    for _ in 0..2 {
        files.save(&**device)?;
        expect_sum(&*files.load(&**device)??)?;
    }
    Ok(Verdict::Kept)
}

fn tampering(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(&**device)? else { return Ok(not_offered()) };
    files.save(&**device)?;
    for path in files.paths("model", files.model) {
        let file = File::options().read(true).write(true).open(&path).map_err(own)?;
        let length = file.metadata().map_err(own)?.len();
        for place in
            (0..length).step_by(usize::try_from(length.div_ceil(PLACES)).unwrap_or(1).max(1))
        {
            let mut byte = [0];
            file.read_exact_at(&mut byte, place).map_err(own)?;
            let changed = [byte[0] ^ 1 << (place % 8)];
            file.write_all_at(&changed, place).map_err(own)?;
            let what = format!("byte {place} of {length} changed");
            demand_refusal(&what, files.load(&**device)?, &[GeneralFailure])?;
            file.write_all_at(&byte, place).map_err(own)?;
        }
        file.write_all_at(&[0], length).map_err(own)?;
        demand_refusal("a byte more", files.load(&**device)?, &[GeneralFailure])?;
        file.set_len(length).map_err(own)?;
    }
    expect_sum(&*files.load(&**device)??)?;
    Ok(Verdict::Kept)
}

fn other_token(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(&**device)? else { return Ok(not_offered()) };
    files.save(&**device)?;
    for byte in [0, 31] {
        let mut token = TOKEN;
        token[byte] ^= 1;
        let [model, data] = files.open_both(&read_write())?;
        let loaded = device.prepare_model_from_cache(loading(model, data, token));
        demand_refusal("another token", loaded, &[GeneralFailure])?;
    }
    Ok(Verdict::Kept)
}

fn wrong_files(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let refused = [GeneralFailure, InvalidArgument];
    let Some(files) = Files::of(&**device)? else {
        let loaded = device.prepare_model_from_cache(loading(vec![], vec![], TOKEN));
        demand_refusal("loading without caching", loaded, &[GeneralFailure])?;
        return Ok(not_offered());
    };
    files.save(&**device)?;
    let loaded = device.prepare_model_from_cache(loading(vec![], vec![], TOKEN));
    demand_refusal("no files", loaded, &refused)?;
    let [mut model, data] = files.open_both(&read_write())?;
    model.extend(files.open("model", &read_write())?);
    model.extend(files.open("data", &read_write())?);
    let loaded = device.prepare_model_from_cache(loading(model, data, TOKEN));
    demand_refusal("too many files", loaded, &refused)?;
    let mut write_only = OpenOptions::new();
    write_only.write(true);
    let mut read_only = OpenOptions::new();
    read_only.read(true);
    for (what, options, allowed) in [
        ("write-only files", write_only, &refused[..1]),
        ("read-only files", read_only, &refused[..]),
    ] {
        let [model, data] = files.open_both(&options)?;
        let loaded = device.prepare_model_from_cache(loading(model, data, TOKEN));
        demand_refusal(what, loaded, allowed)?;
    }
    Ok(Verdict::Kept)
}

fn damaged_data(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(&**device)? else { return Ok(not_offered()) };
    if files.data == 0 {
        return Ok(Verdict::NotOffered("data cache files".into()));
    }
    files.save(&**device)?;
    for path in files.paths("data", files.data) {
        let mut bytes = std::fs::read(&path).map_err(own)?;
        bytes.iter_mut().step_by(3).for_each(|byte| *byte ^= 0x55);
        bytes.push(0);
        std::fs::write(&path, bytes).map_err(own)?;
    }
    // Either answer is allowed, and whatever it computes.
    if let Ok(prepared) = files.load(&**device)? {
        drop(execute(&*prepared, &sum_request()?));
    }
    Ok(Verdict::Kept)
}
