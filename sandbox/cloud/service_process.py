# SPDX-License-Identifier: Apache-2.0
"""One service in one process: its API under cheroot, its workers in threads."""

from collections.abc import Callable, Iterable
import importlib
import os
import sys
import time
from typing import Any, TextIO

from sandbox import processes
from sandbox.cloud import sqlite
from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.config import Paths
from sandbox.cloud.ini import packaged
from sandbox.cloud.services import COMPUTE_HOSTS, HOST, SERVICES
from sandbox.state import State

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

PLACEMENT_WAIT_SECONDS = 120
# Threads that answer requests. Nova's and Neutron's requests wait for those of other services.
# Keystone gets one: its AuthContextMiddleware keeps the token of "the" request on itself
# (keystone/server/flask/request_processing/middleware/auth_context.py), and with two at a time
# a request is now and then judged by the other one's token.
API_THREADS = {"nova": 8, "neutron": 8, "keystone": 1}
DEFAULT_API_THREADS = 4


def serve(state: State, name: str) -> None:
    """Serve until the process is ended.

    :param name: a key of ``services.SERVICES``, or a conductor of Magnum's layout.
    """
    sqlite.tune()
    layout = Layout.of(state)
    if name in layout.names:
        _conduct(state, name)
    else:
        _answer(state, name, alone=name == "magnum" and bool(layout.names))


def _conduct(state: State, name: str) -> None:
    """A conductor: Magnum's own program, once for each of its workers.

    Magnum 23 starts its RPC server before it forks its ``[conductor] workers``, and a server that
    was started is not started again (oslo_messaging/server.py, ``ordered``): they never answer. So
    that as many processes do as were asked for, each has one of these and only the first has the
    periodic tasks.
    """
    first, *others = Layout.of(state).workers_of(name)
    own = next((worker for worker in others if not os.fork()), first)
    if own != first:
        processes.end_with_parent()
        processes.record(state, own, os.getpid())  # the program makes a session of its own
    files = (str(Paths.of(state).conf(conf)) for conf in ("magnum", own))
    sys.argv = ["magnum-conductor", *(f"--config-file={file}" for file in files)]
    from magnum.cmd import conductor

    conductor.main()


def _answer(state: State, name: str, alone: bool) -> None:
    """A service's API.

    :param alone: without what usually belongs to it in threads.
    """
    from cheroot import wsgi

    _point_to_configuration(state, name)
    if name == "nova":
        _register_hypervisor()
    if name == "barbican":
        application = _barbican(state)
    else:
        application = importlib.import_module(SERVICES[name].wsgi).application
    if not alone:
        COMPANIONS.get(name, lambda: None)()
    with state.log("access").open("a", buffering=1) as log:
        server = wsgi.Server(
            (HOST, state.port(name)),
            access_logged(name, application, log),
            numthreads=API_THREADS.get(name, DEFAULT_API_THREADS),
            request_queue_size=64,
        )
        server.start()


def access_logged(name: str, application: Application, log: TextIO) -> Application:
    """The application with one line per request: time, service, request, status, milliseconds,
    program, and the project for which it came.
    """

    def logged(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        begin, status = time.time(), ["-"]

        def remember(line: str, headers: Any, *error: Any) -> Any:
            status[0] = line.split(" ")[0]
            return start_response(line, headers, *error)

        try:
            return application(environ, remember)
        finally:
            query = environ.get("QUERY_STRING")
            target = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
            log.write(
                f"{begin:.3f} {name} {environ['REQUEST_METHOD']} {target}"
                f"{'?' + query if query else ''} {status[0]} "
                f"{1000 * (time.time() - begin):.0f}ms {environ.get('HTTP_USER_AGENT', '-')}"
                f"{_project(environ)}\n"
            )

    return logged


def _project(environ: dict[str, Any]) -> str:
    """`` project=ID`` of the token that came with a request; "" if nobody has looked at one."""
    # The first is Keystone's own, the second what its middleware tells the other services.
    own = environ.get("KEYSTONE_AUTH_CONTEXT") or {}
    project = own.get("project_id") or environ.get("HTTP_X_PROJECT_ID")
    return f" project={project}" if project else ""


def _point_to_configuration(state: State, name: str) -> None:
    """Tell the service where its file is; each has its own way."""
    conf = str(Paths.of(state).conf(name))
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = conf
    os.environ["OS_GLANCE_CONFIG_DIR"] = os.path.dirname(conf)
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = os.path.dirname(conf)
    # Nova takes the first file for its paste configuration.
    os.environ["OS_NOVA_CONFIG_FILES"] = f"{packaged('nova', 'api-paste.ini')};{conf}"
    os.environ["OS_NEUTRON_CONFIG_FILES"] = conf
    by_argument = name in ("cinder", "octavia", "magnum")
    sys.argv = [f"{name}-api", *(["--config-file", conf] if by_argument else [])]


def _register_hypervisor() -> None:
    """Nova loads hypervisor drivers only from below ``nova.virt``."""
    import nova.virt

    from sandbox.cloud.plugins import hypervisor

    sys.modules["nova.virt.sandbox"] = hypervisor
    nova.virt.sandbox = hypervisor


def _barbican(state: State) -> Application:
    """Barbican's own module knows only a paste file below /etc."""
    from paste import deploy

    os.environ["HOME"] = str(Paths.of(state).conf("barbican").parent.parent)
    from barbican.common import config
    from keystonemiddleware import opts

    # Barbican puts another object in the place of oslo.config's global one, where the middleware,
    # imported before, has left its options.
    for group, options in opts.list_auth_token_opts():
        config.CONF.register_opts(options, group=group)
    application: Application = deploy.loadapp(
        f"config:{packaged('barbican', 'barbican-api-paste.ini')}"
    )
    return application


def _start_nova() -> None:
    """Conductor, scheduler and all compute hosts, beside the API."""
    from nova import context, objects, service
    from nova.compute import rpcapi as compute
    from nova.conductor import rpcapi as conductor
    import nova.conf
    from nova.objects import host_mapping
    from nova.scheduler import rpcapi as scheduler
    import os_brick
    import os_vif

    objects.register_all()
    objects.Service.enable_min_version_cache()
    os_brick.setup(nova.conf.CONF)
    os_vif.initialize()
    _wait_for_placement()
    service.Service.create(binary="nova-conductor", topic=conductor.RPC_TOPIC).start()
    service.Service.create(binary="nova-scheduler", topic=scheduler.RPC_TOPIC).start()
    for host in COMPUTE_HOSTS.values():
        service.Service.create(
            binary="nova-compute",
            topic=compute.RPC_TOPIC,
            topic_alt=compute.RPC_TOPIC_ALT,
            host=host,
        ).start()
    # Else a server could be sent to a host that no cell knows yet.
    host_mapping.discover_hosts(context.get_admin_context())


def _wait_for_placement() -> None:
    """A compute host that cannot report its capacity when it starts ends at once."""
    from nova.scheduler.client import report

    deadline = time.monotonic() + PLACEMENT_WAIT_SECONDS
    while True:
        try:
            if report.SchedulerReportClient().get("/").status_code == 200:
                return
        except Exception as error:  # Keystone, its users or Placement are not there yet
            if time.monotonic() > deadline:
                raise TimeoutError("Placement does not answer; see its log") from error
        time.sleep(0.2)


def _start_cinder() -> None:
    """Scheduler and volume service, beside the API."""
    from cinder import service
    import os_brick
    from oslo_config import cfg

    os_brick.setup(cfg.CONF)
    for backend in cfg.CONF.enabled_backends:
        service.Service.create(
            host=f"{cfg.CONF.host}@{backend}", service_name=backend, binary="cinder-volume"
        ).start()
    service.Service.create(binary="cinder-scheduler").start()


def _prepare_octavia() -> None:
    """Let our provider answer to the name ``amphora`` as well, and leave SQLite without a pool."""
    from octavia.api.drivers import driver_factory
    from oslo_config import cfg
    from stevedore import driver

    class Manager(driver.DriverManager[Any]):
        # Octavia itself announces an entry point `amphora`, and a name must be unique.
        def __init__(self, *, name: str, **kwargs: Any) -> None:
            super().__init__(name="sandbox" if name == "amphora" else name, **kwargs)

    driver_factory.stevedore_driver.DriverManager = Manager
    cfg.CONF.set_override("pool_timeout", None, group="database")
    driver_factory.get_driver("amphora")  # its thread settles what a stop left PENDING


def _start_magnum() -> None:
    """The conductor with its periodic tasks, beside the API."""
    from magnum.common import rpc_service, short_id
    from magnum.conductor.handlers import (
        ca_conductor,
        cluster_conductor,
        conductor_listener,
        credential_conductor,
        federation_conductor,
        indirection_api,
        nodegroup_conductor,
    )
    import magnum.conf

    handlers = (
        indirection_api,
        cluster_conductor,
        conductor_listener,
        credential_conductor,
        ca_conductor,
        federation_conductor,
        nodegroup_conductor,
    )
    server = rpc_service.Service.create(
        magnum.conf.CONF.conductor.topic,
        short_id.generate_id(),
        [module.Handler() for module in handlers],
        binary="magnum-conductor",
    )
    server.create_periodic_tasks()
    server.start()


COMPANIONS: dict[str, Callable[[], None]] = {
    "nova": _start_nova,
    "cinder": _start_cinder,
    "octavia": _prepare_octavia,
    "magnum": _start_magnum,
}
