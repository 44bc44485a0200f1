//! [`Manager`]: the service manager of a HIDL device, `hwservicemanager`, from 1.0 to 1.2.

use crate::driver::Process;
use crate::error::{Error, status};
use crate::object::{Binder, CallError, Caller, Interface, Object, Reader, Remote, Writer};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The manager's interfaces, and the one it notifies.
pub mod names {
    /// `IServiceManager` of 1.0.
    pub const MANAGER_1_0: &str = "android.hidl.manager@1.0::IServiceManager";
    /// `IServiceManager` of 1.1.
    pub const MANAGER_1_1: &str = "android.hidl.manager@1.1::IServiceManager";
    /// `IServiceManager` of 1.2.
    pub const MANAGER_1_2: &str = "android.hidl.manager@1.2::IServiceManager";
    /// Who is notified when a service is registered.
    pub const NOTIFICATION: &str = "android.hidl.manager@1.0::IServiceNotification";
}

/// Codes of the manager's methods.
pub mod codes {
    /// A service by interface and name.
    pub const GET: u32 = 1;
    /// Registers a service; the manager asks it for its interfaces.
    pub const ADD: u32 = 2;
    /// How an interface is reached.
    pub const GET_TRANSPORT: u32 = 3;
    /// All services.
    pub const LIST: u32 = 4;
    /// All services of an interface.
    pub const LIST_BY_INTERFACE: u32 = 5;
    /// Asks to be notified of services.
    pub const REGISTER_FOR_NOTIFICATIONS: u32 = 6;
    /// No more.
    pub const UNREGISTER_FOR_NOTIFICATIONS: u32 = 9;
    /// Registers a service with its interfaces.
    pub const ADD_WITH_CHAIN: u32 = 12;
    /// A service was registered; of `IServiceNotification`.
    pub const ON_REGISTRATION: u32 = 1;
}

/// How often a manager that is not there yet is looked for.
const INTERVAL: Duration = Duration::from_millis(200);

/// A service, as the manager lists it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    /// Such as `android.hardware.neuralnetworks@1.0::IDevice`.
    pub interface: String,
    /// Such as `nnapi-sample_all`.
    pub name: String,
}

/// The service manager of a HIDL device.
#[derive(Debug, Clone)]
pub struct Manager {
    remote: Arc<Remote>,
}

impl Manager {
    /// The manager, if it is there.
    ///
    /// # Errors
    /// [`Error::Dead`] if it is not.
    pub fn find(process: &Arc<Process>) -> Result<Self, Error> {
        let remote = process.context_manager();
        remote.ping()?;
        Ok(Self { remote })
    }

    /// The manager, as soon as it is there.
    ///
    /// # Errors
    /// [`Error::Dead`] if it is not in time, which may be never.
    pub fn wait(process: &Arc<Process>, timeout: Option<Duration>) -> Result<Self, Error> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            match Self::find(process) {
                Err(error) if until.is_some_and(|until| Instant::now() >= until) => {
                    return Err(error);
                }
                Err(error) => {
                    tracing::debug!(%error, "waiting for the service manager");
                    std::thread::sleep(INTERVAL);
                }
                Ok(manager) => return Ok(manager),
            }
        }
    }

    /// The manager as an object, to be linked to.
    pub fn remote(&self) -> &Arc<Remote> {
        &self.remote
    }

    /// A service; `None` if there is none of that name.
    ///
    /// # Errors
    /// What a call may say.
    pub fn get(&self, interface: &str, name: &str) -> Result<Option<Binder>, Error> {
        let mut request = Writer::request(names::MANAGER_1_0);
        request.string(interface);
        request.string(name);
        self.remote.call(codes::GET, request, |reply| Ok(reply.binder()?))
    }

    /// Registers a service under all its interfaces. Older managers ask it for them during the call.
    ///
    /// # Errors
    /// What a call may say; [`Error::Status`] with `PERMISSION_DENIED` (-1) if the manager does not accept it.
    pub fn add(&self, name: &str, object: &Arc<dyn Object>) -> Result<(), Error> {
        const PERMISSION_DENIED: i32 = -1;
        let binder = || Some(Binder::Local(Arc::clone(object)));
        let mut request = Writer::request(names::MANAGER_1_2);
        request.string(name);
        request.binder(binder());
        let chain = object.chain().iter().chain([&crate::base::BASE]).map(|one| one.name);
        request.strings(&chain.collect::<Vec<_>>());
        let added = self.remote.call(codes::ADD_WITH_CHAIN, request, |reply| Ok(reply.bool()?));
        let added = match added {
            Err(Error::Status(status::UNKNOWN_TRANSACTION | status::BAD_TYPE)) => {
                let mut request = Writer::request(names::MANAGER_1_0);
                request.string(name);
                request.binder(binder());
                self.remote.call(codes::ADD, request, |reply| Ok(reply.bool()?))?
            }
            added => added?,
        };
        if added { Ok(()) } else { Err(Error::Status(PERMISSION_DENIED)) }
    }

    /// All services.
    ///
    /// # Errors
    /// What a call may say.
    pub fn list(&self) -> Result<Vec<Instance>, Error> {
        let request = Writer::request(names::MANAGER_1_0);
        let names = self.remote.call(codes::LIST, request, |reply| Ok(reply.strings()?))?;
        let instance = |name: String| {
            let (interface, name) = name.split_once('/')?;
            Some(Instance { interface: interface.to_owned(), name: name.to_owned() })
        };
        Ok(names.into_iter().filter_map(instance).collect())
    }

    /// Asks to be notified of services of an interface, of one name or, if it is empty, of any. Those that are
    /// there already are notified too.
    ///
    /// # Errors
    /// What a call may say; [`Error::Status`] if the manager does not want to.
    pub fn notify(
        &self,
        interface: &str,
        name: &str,
        notification: Arc<Notification>,
    ) -> Result<(), Error> {
        let mut request = Writer::request(names::MANAGER_1_0);
        request.string(interface);
        request.string(name);
        request.binder(Some(Binder::Local(notification)));
        self.agreed(codes::REGISTER_FOR_NOTIFICATIONS, request)
    }

    /// Asks for no more of the notifications that were asked for with the same interface, name and object; with an empty
    /// interface and name, of all that the object gets. The manager forgets an object only by this or with its process.
    ///
    /// # Errors
    /// What a call may say; [`Error::Status`] if the manager notifies the object of no such services.
    pub fn notify_no_more(
        &self,
        interface: &str,
        name: &str,
        notification: &Arc<Notification>,
    ) -> Result<(), Error> {
        let mut request = Writer::request(names::MANAGER_1_1);
        request.string(interface);
        request.string(name);
        request.binder(Some(Binder::Local(Arc::clone(notification) as Arc<dyn Object>)));
        self.agreed(codes::UNREGISTER_FOR_NOTIFICATIONS, request)
    }

    /// Calls a method that answers whether it has done what it was asked for.
    fn agreed(&self, code: u32, request: Writer) -> Result<(), Error> {
        match self.remote.call(code, request, |reply| Ok(reply.bool()?))? {
            true => Ok(()),
            false => Err(Error::Status(status::UNKNOWN_ERROR)),
        }
    }
}

type Notify = dyn Fn(Instance) + Send + Sync;

/// Who is notified of services that are registered (`IServiceNotification`).
pub struct Notification(Box<Notify>);

impl Notification {
    /// Does this for each service.
    pub fn new(notify: impl Fn(Instance) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self(Box::new(notify)))
    }
}

impl Object for Notification {
    fn chain(&self) -> &'static [Interface] {
        // No one asks a callback for the hash of its file; all zero is what unreleased ones have.
        const CHAIN: &[Interface] = &[Interface { name: names::NOTIFICATION, hash: [0; 32] }];
        CHAIN
    }

    fn is_one_way(&self, code: u32) -> bool {
        code == codes::ON_REGISTRATION
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        if code != codes::ON_REGISTRATION {
            return Err(CallError::UNKNOWN);
        }
        arguments.expect_interface(names::NOTIFICATION)?;
        let (interface, name) = (arguments.string()?, arguments.string()?);
        (self.0)(Instance { interface, name });
        Ok(Writer::reply())
    }
}
