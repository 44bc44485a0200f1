//! Saving and loading by the files themselves (contract: sections 5 and 6).

use super::super::models::{addition, execute_sum_of, sum};
use super::super::{Check, Run, Verdict, Violation, demand};
use super::bursts::{self, Burst};
use super::driver::{CacheHandles, Driver, PrepareWishes, TOKEN};
use super::driver_model::{DriverModel, ExecuteWishes};
use super::notified::Notified;
use super::paths;
use super::preparation::Preparation;
use super::{NONE, demand_status};
use nnhal_hal::{ErrorStatus, HalVersion, Request};
use nnhal_hidl::Handle;
use nnhal_hidl::v1_2::CacheToken;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["CACHE-2", "CACHE-3", "CACHE-5", "CACHE-15", "PREP-3"],
        name: "what a version saves each version loads, whatever the files held and wherever they stand",
        run: Run::Driver(there_and_back),
    },
    Check {
        ids: &["CACHE-15", "BURST-17"],
        name: "a model that was loaded is executed by every path as the one that was saved",
        run: Run::Driver(loaded_by_every_path),
    },
    Check {
        ids: &["PREP-7", "CACHE-4"],
        name: "handles that are of no use for saving change nothing, and nothing is saved",
        run: Run::Driver(useless_to_save),
    },
    Check {
        ids: &["CACHE-5", "CACHE-6", "CACHE-7"],
        name: "handles that are of no use for loading are returned, and reported once",
        run: Run::Driver(useless_to_load),
    },
    Check {
        ids: &["CACHE-14", "SEC-5"],
        name: "a save with a read-only file does not load by the same handles",
        run: Run::Driver(read_only),
    },
    Check {
        ids: &["CACHE-8"],
        name: "files that may not be read, or not be written, do not load",
        run: Run::Driver(access_modes),
    },
    Check {
        ids: &["CACHE-9", "CACHE-12", "SEC-5"],
        name: "files that changed between the calls do not load, and load again as they were",
        run: Run::Driver(changed_between),
    },
    Check {
        ids: &["CACHE-5", "CACHE-11", "SEC-5"],
        name: "a model cache of another token, or of nothing, does not load",
        run: Run::Driver(replaced),
    },
    Check {
        ids: &["CACHE-10", "SEC-5"],
        name: "any other bit of the token does not load",
        run: Run::Driver(tokens),
    },
    Check {
        ids: &["CACHE-13", "SEC-5"],
        name: "what loads while the files are written is right",
        run: Run::Driver(written_meanwhile),
    },
    Check {
        ids: &["PREP-9"],
        name: "without files the token means nothing",
        run: Run::Driver(no_files),
    },
    Check {
        ids: &["PREP-11"],
        name: "files are not needed after a preparation was reported",
        run: Run::Driver(files_let_go),
    },
];

const REFUSED: &[ErrorStatus] = &[ErrorStatus::InvalidArgument, ErrorStatus::GeneralFailure];
const FAILURE: &[ErrorStatus] = &[ErrorStatus::GeneralFailure];

fn own(error: impl std::fmt::Display) -> Violation {
    Violation(format!("the check's own file: {error}"))
}

/// The client's files, in a folder of their own.
struct Files {
    folder: tempfile::TempDir,
    model: usize,
    data: usize,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Both,
    Reading,
    Writing,
}

impl Files {
    fn new(model: usize, data: usize) -> Result<Self, Violation> {
        let files = Self { folder: tempfile::tempdir().map_err(own)?, model, data };
        for path in files.paths() {
            std::fs::write(path, []).map_err(own)?;
        }
        Ok(files)
    }

    /// As many as the driver wants; nothing if it does not cache.
    fn of(driver: &Driver) -> Result<Option<Self>, Violation> {
        match driver.cache_files_needed()? {
            (0, 0) => Ok(None),
            (model, data) => Self::new(model, data).map(Some),
        }
    }

    fn model_paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.model).map(|index| self.folder.path().join(format!("model{index}")))
    }

    fn data_paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.data).map(|index| self.folder.path().join(format!("data{index}")))
    }

    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.model_paths().chain(self.data_paths())
    }

    /// All files, each opened as `access` says of its number.
    fn open_by(&self, access: impl Fn(usize) -> Access) -> Result<CacheHandles, Violation> {
        let open = |(index, path): (usize, PathBuf)| {
            let mut options = OpenOptions::new();
            options.read(access(index) != Access::Writing);
            options.write(access(index) != Access::Reading);
            Ok::<_, Violation>(Handle::of_fd(options.open(path).map_err(own)?.into()))
        };
        let mut all = self.paths().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
        let data = all.split_off(self.model);
        Ok(CacheHandles { model: all, data, token: TOKEN })
    }

    fn open(&self) -> Result<CacheHandles, Violation> {
        self.open_by(|_| Access::Both)
    }

    /// What is in them.
    fn content(&self) -> Result<Vec<Vec<u8>>, Violation> {
        self.paths().map(|path| std::fs::read(path).map_err(own)).collect()
    }

    fn restore(&self, content: &[Vec<u8>]) -> Result<(), Violation> {
        self.paths().zip(content).try_for_each(|(path, it)| std::fs::write(path, it).map_err(own))
    }

    fn is_empty(&self) -> Result<bool, Violation> {
        Ok(self.content()?.iter().all(Vec::is_empty))
    }
}

/// The versions with methods that save and load.
fn versions(driver: &Driver) -> impl Iterator<Item = HalVersion> + use<> {
    driver.versions().into_iter().filter(|version| *version >= HalVersion::V1_2)
}

fn not_offered() -> Verdict {
    Verdict::NotOffered("caching".into())
}

fn expect_sum(what: &str, model: &DriverModel) -> Result<(), Violation> {
    for version in [HalVersion::V1_0, HalVersion::V1_2] {
        let found = execute_sum_of(|request| {
            let (_, ended) = model.execute(version, request, ExecuteWishes::default())?;
            demand_status(&format!("{what}: executing"), ended.status, NONE)
        })?;
        demand!(found == sum(), "{what}: the sum is {found:?}");
    }
    let found = execute_sum_of(|request| {
        let (status, _, _) = model.run(HalVersion::V1_2, request, ExecuteWishes::default())?;
        demand_status(&format!("{what}: executing synchronously"), status, NONE)
    })?;
    demand!(found == sum(), "{what}: the sum is {found:?}");
    Ok(())
}

/// Prepares the sum with files; it must work, whatever the files are (contract: PREP-7).
fn save(
    what: &str,
    driver: &Driver,
    version: HalVersion,
    files: &CacheHandles,
) -> Result<(), Violation> {
    let (notified, wishes) = (Notified::new(), PrepareWishes::default());
    let callback = Some(Arc::clone(&notified));
    let model = addition([2, 2]);
    let launched = driver.prepare_and_save(version, &model, wishes, files, callback)?;
    demand_status(&format!("{what}: launching"), launched, NONE)?;
    let Preparation { status, model } = notified.only()?;
    demand_status(&format!("{what}: preparing"), status, NONE)?;
    let model = model.ok_or_else(|| Violation(format!("{what}: there is no model with NONE")))?;
    expect_sum(what, &model)
}

/// What a load returned and reported, which go together (contract: CACHE-5, CACHE-12).
fn load(
    what: &str,
    driver: &Driver,
    version: HalVersion,
    files: &CacheHandles,
) -> Result<Preparation, Violation> {
    let notified = Notified::new();
    let launched = driver.load(version, files, Some(Arc::clone(&notified)))?;
    let notified = notified.only()?;
    let failed = launched != ErrorStatus::None.code();
    demand!(
        !failed || launched == notified.status,
        "{what}: {launched} is returned, {} reported",
        notified.status
    );
    let (success, model) = (notified.status == ErrorStatus::None.code(), notified.model.is_some());
    demand!(
        success == model,
        "{what}: {} is reported, and that there is a model: {model}",
        notified.status
    );
    Ok(notified)
}

fn expect_loaded(
    what: &str,
    driver: &Driver,
    version: HalVersion,
    files: &CacheHandles,
) -> Result<(), Violation> {
    let notified = load(what, driver, version, files)?;
    demand_status(what, notified.status, NONE)?;
    notified.model.map_or(Ok(()), |model| expect_sum(what, &model))
}

/// Demands a refusal that is returned as well as reported, since arguments and the integrity of the
/// model cache are looked at before the method returns (contract: CACHE-5).
fn expect_refused(
    what: &str,
    driver: &Driver,
    version: HalVersion,
    files: &CacheHandles,
    allowed: &[ErrorStatus],
) -> Result<(), Violation> {
    let notified = Notified::<Preparation>::new();
    let launched = driver.load(version, files, Some(Arc::clone(&notified)))?;
    let notified = notified.only()?;
    demand_status(&format!("{what}, as returned"), launched, allowed)?;
    demand_status(&format!("{what}, as reported"), notified.status, allowed)?;
    demand!(
        launched == notified.status,
        "{what}: {launched} is returned, {} reported",
        notified.status
    );
    demand!(notified.model.is_none(), "{what}: there is a model");
    Ok(())
}

/// Either it does not load, or it computes what it must (contract: CACHE-13).
fn expect_right_or_nothing(
    what: &str,
    driver: &Driver,
    version: HalVersion,
    files: &CacheHandles,
) -> Result<(), Violation> {
    let notified = load(what, driver, version, files)?;
    notified.model.map_or(Ok(()), |model| expect_sum(what, &model))
}

fn there_and_back(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(driver)? else { return Ok(not_offered()) };
    for (length, position) in [(0, 0), (5000, 0), (5000, 77), (1, 100_000)] {
        for version in versions(driver) {
            for path in files.paths() {
                std::fs::write(path, vec![0x55; length]).map_err(own)?;
            }
            let stand_at = |handles: &CacheHandles| {
                for handle in handles.model.iter().chain(&handles.data) {
                    for fd in handle.fds() {
                        let mut file = File::from(fd.try_clone().map_err(own)?);
                        file.seek(SeekFrom::Start(position)).map_err(own)?;
                    }
                }
                Ok::<_, Violation>(())
            };
            let what = format!("files of {length} bytes, at {position}, by {version}");
            let handles = files.open()?;
            stand_at(&handles)?;
            save(&what, driver, version, &handles)?;
            for loading in versions(driver) {
                let what = format!("{what}, loaded by {loading}");
                // By the handles that saved, wherever they stand now, and by new ones.
                expect_loaded(&what, driver, loading, &handles)?;
                let again = files.open()?;
                stand_at(&again)?;
                expect_loaded(&what, driver, loading, &again)?;
            }
        }
    }
    Ok(Verdict::Kept)
}

/// The sum by a burst, and by all that executes in 1.3 besides.
fn expect_sum_by_other_paths(what: &str, model: &DriverModel) -> Result<(), Violation> {
    let (client, request) = bursts::client()?;
    let burst = Burst::on(model.again(), client, request, nnhal_burst::QUEUE_CAPACITY);
    let by_burst = burst.and_then(|mut burst| {
        // With memory that is asked for, and with memory that is known.
        burst.expect_sum()?;
        burst.expect_sum()
    });
    by_burst.map_err(|Violation(found)| Violation(format!("{what}, by a burst: {found}")))?;
    if model.v1_3.is_none() {
        return Ok(());
    }
    type Execute = fn(&DriverModel, &Request) -> Result<i32, Violation>;
    let paths: [(&str, Execute); 3] = [
        ("asynchronously", |model, request| {
            let wishes = ExecuteWishes::default();
            Ok(model.execute(HalVersion::V1_3, request, wishes)?.1.status)
        }),
        ("synchronously", |model, request| {
            Ok(model.run(HalVersion::V1_3, request, ExecuteWishes::default())?.0)
        }),
        ("behind fences", |model, request| {
            paths::behind_no_fence(model, request, ExecuteWishes::default())
        }),
    ];
    for (path, execute) in paths {
        let what = format!("{what}, {path}");
        let found = execute_sum_of(|request| demand_status(&what, execute(model, request)?, NONE))?;
        demand!(found == sum(), "{what}: the sum is {found:?}");
    }
    Ok(())
}

fn loaded_by_every_path(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(driver)? else { return Ok(not_offered()) };
    for version in versions(driver) {
        let what = format!("saved by {version}");
        save(&what, driver, version, &files.open()?)?;
        for loading in versions(driver) {
            let what = format!("{what}, loaded by {loading}");
            let loaded = load(&what, driver, loading, &files.open()?)?;
            demand_status(&what, loaded.status, NONE)?;
            let model = loaded.model.ok_or_else(|| Violation(format!("{what}: no model")))?;
            expect_sum(&what, &model)?;
            expect_sum_by_other_paths(&what, &model)?;
        }
    }
    Ok(Verdict::Kept)
}

/// Ways to spoil the handles of a call, each for each handle in turn.
fn spoilt(files: &Files) -> Result<Vec<(String, CacheHandles)>, Violation> {
    let another = || Ok::<_, Violation>(OwnedFd::from(tempfile::tempfile().map_err(own)?));
    let mut all = Vec::new();
    for index in 0..files.model + files.data {
        let handles = || files.open();
        let put = |mut handles: CacheHandles, handle: Handle| {
            let data = index.checked_sub(files.model);
            match data {
                Some(data) => handles.data[data] = handle,
                None => handles.model[index] = handle,
            }
            handles
        };
        let two = Handle::new(vec![another()?, another()?], vec![]);
        all.push((format!("file {index} is null"), put(handles()?, Handle::NULL)));
        all.push((format!("file {index} is none"), put(handles()?, Handle::new(vec![], vec![]))));
        all.push((format!("file {index} is two"), put(handles()?, two)));
    }
    for (what, kind) in [("model", true), ("data", false)] {
        let mut more = files.open()?;
        let list = if kind { &mut more.model } else { &mut more.data };
        list.push(Handle::of_fd(another()?));
        all.push((format!("a {what} file more"), more));
        let mut less = files.open()?;
        let list = if kind { &mut less.model } else { &mut less.data };
        // None at all may be meant so (contract: CACHE-4).
        if list.pop().is_some() && !list.is_empty() {
            all.push((format!("a {what} file less"), less));
        }
    }
    Ok(all)
}

fn useless_to_save(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("caching, which is of 1.2".into()));
    }
    // A device that does not cache is given some all the same.
    let Some(files) = Files::of(driver)? else {
        for (what, handles) in spoilt(&Files::new(1, 1)?)? {
            save(&what, driver, driver.newest(), &handles)?;
        }
        return Ok(not_offered());
    };
    for version in versions(driver) {
        let count = spoilt(&files)?.len();
        for place in 0..count {
            files.restore(&vec![Vec::new(); files.model + files.data])?;
            let (what, handles) = spoilt(&files)?.swap_remove(place);
            let what = format!("{what}, by {version}");
            save(&what, driver, version, &handles)?;
            // What was saved all the same does not load, neither so nor by good handles.
            expect_refused(&what, driver, version, &handles, REFUSED)?;
            expect_refused(&what, driver, version, &files.open()?, REFUSED)?;
        }
    }
    Ok(Verdict::Kept)
}

fn useless_to_load(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("caching, which is of 1.2".into()));
    }
    let Some(files) = Files::of(driver)? else {
        for version in versions(driver) {
            let none = CacheHandles::none();
            expect_refused("loading without caching", driver, version, &none, FAILURE)?;
            let some = Files::new(1, 0)?.open()?;
            expect_refused("loading without caching", driver, version, &some, REFUSED)?;
        }
        return Ok(not_offered());
    };
    save("a good save", driver, driver.newest(), &files.open()?)?;
    for version in versions(driver) {
        let none = CacheHandles::none();
        expect_refused("no files", driver, version, &none, REFUSED)?;
        for (what, handles) in spoilt(&files)? {
            expect_refused(&format!("{what}, by {version}"), driver, version, &handles, REFUSED)?;
        }
        expect_loaded("good files", driver, version, &files.open()?)?;
    }
    Ok(Verdict::Kept)
}

fn read_only(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(driver)? else { return Ok(not_offered()) };
    for version in versions(driver) {
        for index in 0..files.model + files.data {
            for was_saved in [false, true] {
                files.restore(&vec![Vec::new(); files.model + files.data])?;
                if was_saved {
                    save("a good save", driver, version, &files.open()?)?;
                }
                let access = |it: usize| if it == index { Access::Reading } else { Access::Both };
                let what = format!("file {index} is read-only, saved before: {was_saved}");
                save(&what, driver, version, &files.open_by(access)?)?;
                expect_refused(&what, driver, version, &files.open_by(access)?, REFUSED)?;
                // The files may be those of the good save, or none that load.
                expect_right_or_nothing(&what, driver, version, &files.open()?)?;
                if !was_saved {
                    expect_refused(&what, driver, version, &files.open()?, REFUSED)?;
                }
            }
        }
    }
    Ok(Verdict::Kept)
}

fn access_modes(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(driver)? else { return Ok(not_offered()) };
    save("a good save", driver, driver.newest(), &files.open()?)?;
    for version in versions(driver) {
        for index in 0..files.model + files.data {
            for (mode, allowed) in [(Access::Writing, FAILURE), (Access::Reading, REFUSED)] {
                let access = |it: usize| if it == index { mode } else { Access::Both };
                let what = format!("file {index} is for {mode:?} alone, by {version}");
                expect_refused(&what, driver, version, &files.open_by(access)?, allowed)?;
            }
        }
        expect_loaded("good files", driver, version, &files.open()?)?;
    }
    Ok(Verdict::Kept)
}

/// A way to change a file's content.
type Change = (&'static str, fn(&mut Vec<u8>));

const CHANGES: &[Change] = &[
    ("its first bit", |it| it[0] ^= 1),
    ("a bit in the middle", |it| {
        let middle = it.len() / 2;
        it[middle] ^= 0x10;
    }),
    ("its last bit", |it| {
        if let Some(last) = it.last_mut() {
            *last ^= 0x80;
        }
    }),
    ("a byte more", |it| it.push(0)),
    ("a byte less", |it| it.truncate(it.len() - 1)),
    ("nothing left", Vec::clear),
    ("twice the same", |it| it.extend_from_within(..)),
    ("a byte in front", |it| it.insert(0, 0)),
];

fn changed_between(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(driver)? else { return Ok(not_offered()) };
    for version in versions(driver) {
        save("a good save", driver, version, &files.open()?)?;
        if files.is_empty()? {
            return Ok(Verdict::NotOffered("saving the sum".into()));
        }
        let content = files.content()?;
        // Through one set of handles, which is changed between its calls.
        let handles = files.open()?;
        for (index, before) in content.iter().enumerate() {
            for (what, change) in CHANGES.iter().filter(|_| !before.is_empty()) {
                let mut changed = content.clone();
                change(&mut changed[index]);
                files.restore(&changed)?;
                let what = format!("file {index}: {what}, by {version}");
                if index < files.model {
                    expect_refused(&what, driver, version, &handles, FAILURE)?;
                } else {
                    // Wrong values are the worst that may come of it.
                    let notified = load(&what, driver, version, &handles)?;
                    if let Some(model) = notified.model {
                        let (_, ended) = model.execute(
                            HalVersion::V1_0,
                            &super::super::models::sum_request()?,
                            ExecuteWishes::default(),
                        )?;
                        drop(ended);
                    }
                }
                files.restore(&content)?;
                expect_loaded("as it was", driver, version, &handles)?;
            }
        }
    }
    Ok(Verdict::Kept)
}

fn replaced(driver: &Driver) -> Result<Verdict, Violation> {
    let (Some(files), Some(others)) = (Files::of(driver)?, Files::of(driver)?) else {
        return Ok(not_offered());
    };
    if files.model == 0 {
        return Ok(Verdict::NotOffered("model cache files".into()));
    }
    const OTHER: CacheToken = [8; 32];
    for version in versions(driver) {
        save("a good save", driver, version, &files.open()?)?;
        save("another save", driver, version, &CacheHandles { token: OTHER, ..others.open()? })?;
        let mixed = CacheHandles { model: others.open()?.model, ..files.open()? };
        let what = format!("model caches of another token, by {version}");
        expect_refused(&what, driver, version, &mixed, FAILURE)?;
        let empty = Files::new(files.model, files.data)?;
        let what = format!("model caches of nothing, by {version}");
        expect_refused(&what, driver, version, &empty.open()?, FAILURE)?;
        expect_loaded("good files", driver, version, &files.open()?)?;
        let other = CacheHandles { token: OTHER, ..others.open()? };
        expect_loaded("good files of another token", driver, version, &other)?;
    }
    Ok(Verdict::Kept)
}

fn tokens(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(driver)? else { return Ok(not_offered()) };
    for version in versions(driver) {
        save("a good save", driver, version, &files.open()?)?;
        for bit in 0..256 {
            let mut handles = files.open()?;
            handles.token[bit / 8] ^= 1 << (bit % 8);
            let what = format!("bit {bit} of the token, by {version}");
            expect_refused(&what, driver, version, &handles, FAILURE)?;
        }
        expect_loaded("good files", driver, version, &files.open()?)?;
    }
    Ok(Verdict::Kept)
}

fn written_meanwhile(driver: &Driver) -> Result<Verdict, Violation> {
    const TIMES: usize = 40;
    let Some(files) = Files::of(driver)? else { return Ok(not_offered()) };
    let version = driver.newest();
    save("a good save", driver, version, &files.open()?)?;
    let good = files.content()?;
    let over = AtomicBool::new(false);
    let (over, files) = (&over, &files);
    std::thread::scope(|scope| {
        let good = &good;
        let writer = scope.spawn(move || {
            for round in 0_usize.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                for (path, content) in files.paths().zip(good) {
                    let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
                    if content.is_empty() {
                        continue;
                    }
                    // A bit there, a bit back: in between it is what was saved.
                    let place = round * 31 % content.len();
                    for byte in [content[place] ^ 4, content[place]] {
                        drop(file.write_all_at(&[byte], place as u64));
                    }
                }
            }
        });
        let mut outcome = Ok(());
        for round in 0..TIMES {
            outcome = outcome.and_then(|()| {
                let what = format!("written meanwhile, time {round}");
                if round % 4 == 3 {
                    save(&what, driver, version, &files.open()?)?;
                }
                expect_right_or_nothing(&what, driver, version, &files.open()?)
            });
        }
        over.store(true, Ordering::Relaxed);
        drop(writer.join());
        outcome
    })?;
    Ok(Verdict::Kept)
}

fn no_files(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("tokens, which are of 1.2".into()));
    }
    for version in versions(driver) {
        for token in [[0; 32], [0xFF; 32], TOKEN, TOKEN] {
            let files = CacheHandles { token, ..CacheHandles::none() };
            save(&format!("token {} without files", token[0]), driver, version, &files)?;
        }
    }
    Ok(Verdict::Kept)
}

fn files_let_go(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(files) = Files::of(driver)? else { return Ok(not_offered()) };
    for version in versions(driver) {
        save("a good save", driver, version, &files.open()?)?;
        let content = files.content()?;
        let notified = load("good files", driver, version, &files.open()?)?;
        let Some(model) = notified.model else { return Err(Violation("it does not load".into())) };
        // What was loaded is the driver's own: the files may become anything.
        files.restore(&vec![vec![0xAA; 100]; content.len()])?;
        expect_sum("after its files were written over", &model)?;
        files.restore(&vec![Vec::new(); content.len()])?;
        expect_sum("after its files were emptied", &model)?;
    }
    Ok(Verdict::Kept)
}
