//! A minimal service manager: what services and clients need of `hwservicemanager`, and no more.

use nnhal_hwbinder::manager::{codes, names};
use nnhal_hwbinder::{
    Binder, CallError, Caller, DeathLink, Interface, Object, Process, Reader, Remote, Writer,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// It is not the released one, whose hash it does not give.
const CHAIN: &[Interface] = &[
    Interface { name: names::MANAGER_1_2, hash: [0; 32] },
    Interface { name: names::MANAGER_1_1, hash: [0; 32] },
    Interface { name: names::MANAGER_1_0, hash: [0; 32] },
];

const BASE: &str = "android.hidl.base@1.0::IBase";
const HWBINDER: u8 = 1;

/// Services by interface and name.
pub struct Manager {
    own: Weak<Self>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    services: BTreeMap<(String, String), (Arc<Remote>, DeathLink)>,
    watchers: Vec<(String, String, Arc<Remote>)>,
}

impl Manager {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, name: &str, object: Option<Binder>, chain: Vec<String>) -> bool {
        let Some(Binder::Remote(object)) = object else { return false };
        for interface in chain.into_iter().filter(|one| one != BASE) {
            let key = (interface.clone(), name.to_owned());
            let (own, gone) = (Weak::clone(&self.own), (key.clone(), Arc::downgrade(&object)));
            let link = object.link_to_death(move || {
                let Some(manager) = own.upgrade() else { return };
                let (key, object) = gone;
                let mut state = manager.lock();
                let current = state.services.get(&key);
                if current.is_some_and(|(known, _)| Arc::as_ptr(known) == object.as_ptr()) {
                    let removed = state.services.remove(&key);
                    drop(state);
                    drop(removed);
                }
            });
            let replaced = self.lock().services.insert(key, (Arc::clone(&object), link));
            drop(replaced);
            let state = self.lock();
            let wanted = |watched: &(String, String, Arc<Remote>)| {
                watched.0 == interface && (watched.1.is_empty() || watched.1 == name)
            };
            let notified: Vec<_> =
                state.watchers.iter().filter(|one| wanted(one)).cloned().collect();
            drop(state);
            for (_, _, watcher) in notified {
                notify(&watcher, &interface, name, false);
            }
        }
        true
    }
}

fn notify(watcher: &Remote, interface: &str, name: &str, preexisting: bool) {
    let mut request = Writer::request(names::NOTIFICATION);
    request.string(interface);
    request.string(name);
    request.bool(preexisting);
    let _ = watcher.call_one_way(codes::ON_REGISTRATION, request);
}

impl Object for Manager {
    fn chain(&self) -> &'static [Interface] {
        CHAIN
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        arguments.expect_interface(match code {
            ..=8 => names::MANAGER_1_0,
            9 => names::MANAGER_1_1,
            _ => names::MANAGER_1_2,
        })?;
        let mut reply = Writer::reply();
        match code {
            codes::GET => {
                let key = (arguments.string()?, arguments.string()?);
                let object = self.lock().services.get(&key).map(|(object, _)| Arc::clone(object));
                reply.binder(object.map(Binder::Remote));
            }
            codes::ADD => {
                let (name, object) = (arguments.string()?, arguments.binder()?);
                let chain = match &object {
                    Some(Binder::Remote(object)) => object.interface_chain()?,
                    _ => Vec::new(),
                };
                reply.bool(self.add(&name, object, chain));
            }
            codes::GET_TRANSPORT => reply.u8(HWBINDER),
            codes::LIST => {
                let state = self.lock();
                let names =
                    state.services.keys().map(|(interface, name)| format!("{interface}/{name}"));
                reply.strings(&names.collect::<Vec<_>>());
            }
            codes::LIST_BY_INTERFACE | 13 => {
                let interface = arguments.string()?;
                let state = self.lock();
                let names = state.services.keys().filter(|(one, _)| *one == interface);
                reply.strings(&names.map(|(_, name)| name.clone()).collect::<Vec<_>>());
            }
            codes::REGISTER_FOR_NOTIFICATIONS => {
                let (interface, name) = (arguments.string()?, arguments.string()?);
                let Some(Binder::Remote(watcher)) = arguments.binder()? else {
                    return Err(CallError::NULL);
                };
                let state = self.lock();
                let present: Vec<String> = state
                    .services
                    .keys()
                    .filter(|key| key.0 == interface && (name.is_empty() || key.1 == name))
                    .map(|key| key.1.clone())
                    .collect();
                drop(state);
                for present in present {
                    notify(&watcher, &interface, &present, true);
                }
                self.lock().watchers.push((interface, name, watcher));
                reply.bool(true);
            }
            codes::UNREGISTER_FOR_NOTIFICATIONS => {
                let (interface, name) = (arguments.string()?, arguments.string()?);
                let Some(Binder::Remote(watcher)) = arguments.binder()? else {
                    return Err(CallError::NULL);
                };
                let mut state = self.lock();
                let before = state.watchers.len();
                let all = interface.is_empty();
                state.watchers.retain(|one| {
                    let same = all || (one.0 == interface && one.1 == name);
                    !same || !Arc::ptr_eq(&one.2, &watcher)
                });
                reply.bool(state.watchers.len() < before);
            }
            codes::ADD_WITH_CHAIN => {
                let (name, object) = (arguments.string()?, arguments.binder()?);
                let chain = arguments.strings()?;
                reply.bool(self.add(&name, object, chain));
            }
            _ => return Err(CallError::UNKNOWN),
        }
        Ok(reply)
    }
}

/// Is the service manager until the process is killed.
pub fn run(process: &Arc<Process>) -> Result<(), nnhal_hwbinder::Error> {
    let manager = Arc::new_cyclic(|own| Manager { own: own.clone(), state: Mutex::default() });
    process.become_context_manager(manager)?;
    loop {
        std::thread::park();
    }
}
