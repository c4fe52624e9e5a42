# SPDX-License-Identifier: Apache-2.0
"""The fixed list of words beside the glossary: what Kubernetes, OpenStack, Helm and Python call so.

A word that means something particular to this project belongs to the glossary, with its source, and
not here. Singular stands for plural, and a verb for its regular forms.
"""

#: Kinds, fields and components of Kubernetes and Cluster API, and what is installed with them.
KUBERNETES = frozenset(
    """
    admission affinity api apiserver attacher audit calico capi capo cilium claim cni config
    configmap container containerd csi daemon daemonset dashboard detector dns docker driver
    effect etcd event finalizer healthcheck holder hook hubble image ingress instance inventory
    k8s kind kube kubeadm kubeapi kubecontroller kubelet kubeproxy kubernetes kubescheduler live
    liveness manager map metadata metrics mode namespaced npd oidc opts owner phase plural pod
    policy priority probe provisioner ready reclaim reconciler registrar replica resizer
    resource resourceversion role secret selector service snapshotter spec stateful status
    subresource taint toleration topology uid version volume watch watcher worker workload
    """.split()
)
#: Fields of Magnum and nouns of OpenStack.
OPENSTACK = frozenset(
    """
    amphora app architecture auth availability az balancer barbican blockdevice boot bucket
    catalogue cinder cloud cluster coe compute conductor cred credential discovery disk
    distribution distro domain federation fixed flavor floating glance group identity image
    infra interface ip keypair keystone lb login magnum manila master member monitor network
    neutron ng node notification nova obj octavia openstack os port preflight project property
    provider quota ram region repo router security server share software subnet tenant trust user
    username vcpus visibility volume zone
    """.split()
)
#: Words of Helm, of package managers and of registries.
HELM = frozenset(
    """
    archive argv artifact blob chart cli descriptor digest dry env helm history hook layout
    manifest media oci package platform puller registry release repository revision rollback
    schema stderr stdin stdout tag uninstall values
    """.split()
)
#: Nouns of programming, of networks and of Python.
NOUNS = frozenset(
    """
    access action address admin advice age algorithm alias answer argparse args argument attempt
    autoscaling availability backup base binding body bool bound budget buffer bundle byte ca
    cacert cache capability capacity case cert channel char choice cidr cipher class clause client
    clock code codec column command conf configuration conflict connection content context count
    counter creation ctx cure data database day default definition deletion delta depth
    description detail dictionary difference directory document domain duration encoding end entry
    environment error evaluation example exception executable exit expansion expiry explanation
    failure field file flag fleet form format formatter function grace handler handshake hash head
    header healing help history host http https id identity index inheritance inside instant int
    interval item jitter job json key kwargs layer lb length limit line list lister location lock
    log lookup lower makefile mapping mask maximum mean member membership memory message metal
    method minimum minute mode module moment monitoring name nameserver networking number obj object
    operator epilog
    option order outcome output owner ownership page pair parser part password path pattern pause
    payload peer period permission plan plugin pool position prefix problem process prog program
    proof protocol proxy purpose query question queue range reader reconciliation record recovery
    ref reference refusal removal request response result retention retries retry root rotation
    row rule run sans scaling scope second sendall sentence sequence session setting settings
    shape side site size sock socket source stack stage staleness start state step storage store
    stream string subcommand subject suffix suite sum table target text thread time timeout
    timestamp title tls token total transport trigger tuple type ui unit upper url usage use user
    exposition textfile utc uuid validity value variable verb view weight why word writer yaml zone
    """.split()
)
#: Verbs; their regular forms count as well.
VERBS = frozenset(
    """
    abandon accept acquire add adopt advance affect allow annotate answer apply archive attach
    autoscale await begin bind bound build bundle bypass cache calculate cancel carry change
    check choose clean clear close collect compare complete compute configure confirm connect
    contain continue convert copy correct count cover create decode decrease default defer
    delete deploy derive describe destroy detach detect disable discard discover drain drop edit
    enable encode end enforce ensure enter evaluate exchange exclude exist expand expect expire
    explain export extract fail fetch fill filter finalize find finish fit force forget format
    generate get grant group handle hash have ignore import include increase inherit initialize
    insert inspect install invalidate issue join keep label leave limit link list load lock log
    make manage mark match merge migrate miss monitor move name need normalize notify observe omit
    open order own pack parse pass patch pause pin plan poll prepare present prevent preview print
    protect prove provide provision prune pull push put quote raise reach read reassert rebuild
    recognize reconcile record redact reduce refer refresh refuse register reject release remain
    remember remove rename render renew reorder repair repeat replace report request require
    reset resize resolve restart restore restrict resume retire retry return reuse revoke roll
    rollback rotate run save scale scan schedule search secure select send separate serve set
    settle share shorten show shrink sign sort spawn split spread start stop store strip support
    suppress suspect switch sync take tell terminate test track transfer translate trigger trust
    try unpack unpin unwrap update upgrade use validate verify visit wait wake warn watch
    withhold wrap write
    """.split()
)
#: Irregular forms of these verbs.
IRREGULAR = frozenset(
    """
    are began begun bound built chosen does done found given got had has held hidden is kept
    left lost made read run said seen sent set shown shut stopped taken told was went withheld
    written
    """.split()
) - frozenset({"said", "told", "went"})
#: Adjectives that say how a thing is.
ADJECTIVES = frozenset(
    """
    absent auto available bad bare basic busy common complete current due earlier empty equal
    external extra final first free fresh full good healthy http immutable incomplete initial
    insecure internal invalid k8s large last late latest least left local long longest lost
    malformed max min minimum misconfigured missing more most multiple new newer newest next no
    null old older oldest only open optional outdated own partial pending periodic plain
    possible present previous primary private public pure raw readable recent repeatable
    required retryable same second sensitive separate short single software stale static strict
    transient
    true unaccepted unapplied unavailable unchanged unchecked unfinished unknown unreachable
    unreadable unrecorded unreferenced unsupported unusable unused unvalidated unwanted valid
    whole wide wrong
    """.split()
) - frozenset({"unwanted"})
#: Prepositions, conjunctions and auxiliaries, and other small words of grammar.
GRAMMAR = frozenset(
    """
    a about above after again all alone an and as asof at back be before behind being below
    between but by can does each else every for from has have if in into is its may me must no
    not now of off on once or other others out over own per since still than that the then to
    too under until up was when whether which while with within without
    """.split()
)
#: Words that say nothing, whatever table has them.
EMPTY = frozenset(
    """
    it mine one ours stuff that theirs thing things what
    """.split()
)
FIXED = (KUBERNETES | OPENSTACK | HELM | NOUNS | IRREGULAR | ADJECTIVES | GRAMMAR) - EMPTY

#: Participles that stand alone as a state which Kubernetes, Magnum or Python call so.
STATES = frozenset(
    """
    autoscaling binding deferred enabled everything expected failed malformed mapping missing
    monitoring namespaced networking observed outdated paused pending saving scaling setting
    settings string unsupported
    """.split()
)
#: Past participles that do not end in -ed.
PARTICIPLES = frozenset(
    """
    begun bound built chosen done found given gone had held hidden kept known known left lost made
    meant owed read said seen sent shown taken told withheld written
    """.split()
) - frozenset({"read", "bound"})
