"""The types of the flags of each command, for checkers alone.

Made from the definitions of the program; do not edit by hand.
"""

from __future__ import annotations

import datetime
import os
from typing import Mapping, Sequence, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]
Number = Union[str, int, float]
Size = Union[str, int, float]
Share = Union[str, float]
Rate = Union[str, int]
Time = Union[str, int, datetime.timedelta]
Text = Union[str, int, float, "os.PathLike[str]"]
# One of them, or several.
Paths = Union[Path, Sequence[Path]]
Numbers = Union[Number, Sequence[Number]]
Sizes = Union[Size, Sequence[Size]]
Shares = Union[Share, Sequence[Share]]
Rates = Union[Rate, Sequence[Rate]]
Times = Union[Time, Sequence[Time]]
Texts = Union[Text, Sequence[Text]]
Pairs = Union[str, Sequence[str], Mapping[str, Text]]


class RunFlags(TypedDict, total=False):
    """Flags of ``afar run``."""

    local: Size
    of: Text
    budget: Text
    policy: Text
    prefetch: Text
    remember: Path
    tier: Texts
    rtt: Time
    one_way: Time
    bandwidth: Rate
    link: Text
    in_flight: Number
    write_back: Text
    profile: Path
    far: Texts
    replicas: Text
    far_timeout: Time
    far_take: bool
    spin_max: Time
    supervisor_cpu: Number
    like: Text
    engine: Text
    page_cluster: Number
    trap: Text
    wait: Text
    seed: Number
    no_calibrate: bool
    calibrated: Path
    allow_below_floor: bool
    allow_unmanaged: bool
    record: Path
    validate: Texts
    repetitions: Text
    within: Share
    ablate: Texts
    output: Path


class SweepFlags(TypedDict, total=False):
    """Flags of ``afar sweep``."""

    output: Path
    find: Share
    allow_unmanaged: bool
    csv: Path
    fail_above: Share
    on: Text


class SimFlags(TypedDict, total=False):
    """Flags of ``afar sim``."""

    sensitivity: bool
    topology: Texts
    racks: Numbers
    hosts_per_rack: Numbers
    spines: Numbers
    spine_rate: Rates
    hosts: Numbers
    arity: Numbers
    rate: Rates
    delay: Times
    switching: Texts
    balance: Texts
    buffer: Sizes
    host_buffer: Sizes
    host_queue: Texts
    mtu: Sizes
    header: Sizes
    mark: Numbers
    trim: Numbers
    transport: Texts
    variant: Texts
    end: Texts
    traffic: Texts
    sizes: Texts
    load: Shares
    flows: Numbers
    repetitions: Numbers
    exchange: Texts
    request_size: Sizes
    request_timeout: Times
    last_packet: Texts
    warm_up: Texts
    cool_down: Texts
    size: Sizes
    senders: Numbers
    receiver: Texts
    burst: Numbers
    faults: Path
    blocks: Path
    moves: Path
    nodes: Numbers
    clusters: Numbers
    scale: Texts
    replay: Texts
    begin: Texts
    copies: Numbers
    batch: Times
    speed: Texts
    seed: Numbers
    every: Times
    window: Numbers
    timeout: Times
    probe_after: Texts
    free_packets: Numbers
    expired_tokens: Texts
    token_expiry: Times
    downgrade: Times
    timeslot: Times
    epoch: Texts
    schedule_time: Times
    schedule_each: Times
    unscheduled: Numbers
    levels: Texts
    overcommitment: Texts
    messages_per_ack: Texts
    window_max: Numbers
    timeout_min: Times
    handshake: Texts
    output: Path
    csv: Path
    parquet: Path
    delay_profile: Path
    ports: Path
    cdf: Path
    svg: Path
    pcap: Path
    pcap_packets: Numbers
    steps: Path
    threads: Numbers
    on: Texts


class LoopFlags(TypedDict, total=False):
    """Flags of ``afar loop``."""

    output: Path
    allow_unmanaged: bool
    csv: Path


class BenchFlags(TypedDict, total=False):
    """Flags of ``afar bench``."""

    job: Path
    rw: Text
    rwmixread: Number
    bs: Size
    size: Size
    offset: Size
    fua: bool
    fsync: Text
    random_distribution: Text
    verify: bool
    do_verify: Number
    overwrite: bool
    layout: bool
    seed: Number
    depth: Number
    threads: Number
    rate_iops: Number
    rate: Size
    spacing: Text
    duration: Time
    warm_up: Time
    requests: Number
    busy_poll: Time
    header_digest: bool
    data_digest: bool
    ctrl_loss_tmo: Time
    host: Text
    initiator: Text
    chap_secret: Path
    chap_target_secret: Path
    chap_algs: Texts
    name: Text
    filename: Path
    direct: Number
    time_based: bool
    sweep: Text
    svg: Path
    repetitions: Number
    csv: Path


class ServeFlags(TypedDict, total=False):
    """Flags of ``afar serve``."""

    nvme: Texts
    iscsi: Texts
    allow: Texts
    shards: Number
    busy_poll: Time
    zero_copy: Size
    metrics: Text
    state: Path
    shared: bool
    new_identity: bool
    controllers: Text
    limit: Pairs
    user: Text
    sandbox: Text
    log: Text


class PredictFlags(TypedDict, total=False):
    """Flags of ``afar predict``."""

    record: Path
    local: Sizes
    of: Text
    alone: Time
    rtt: Times
    bandwidth: Rates
    policy: Text
    link: Text
    allow_unmanaged: bool
    csv: Path
    svg: Path


class ReportFlags(TypedDict, total=False):
    """Flags of ``afar report``."""

    output: Path
    svg: Path
    png: Path
    format: Text
    compare: bool
    bound: Share
    title: Text


class PlanCostFlags(TypedDict, total=False):
    """Flags of ``afar plan cost``."""

    set: Pairs
    map: bool
    axis: Number
    svg: Path
    csv: Path


class PlanLatencyFlags(TypedDict, total=False):
    """Flags of ``afar plan latency``."""

    set: Pairs
    sweep: Texts
    svg: Path
    csv: Path


class PlanPlaceFlags(TypedDict, total=False):
    """Flags of ``afar plan place``."""

    synthetic: Number
    seed: Number
    now: Path
    lose_server: Texts
    add_tenant: Texts
    exact: Time
    move_at_most: Size
    move_rate: Rate
    csv: Path
    svg: Path


class PlanAdmitFlags(TypedDict, total=False):
    """Flags of ``afar plan admit``."""

    svg: Path
    csv: Path


class PlanPoolFlags(TypedDict, total=False):
    """Flags of ``afar plan pool``."""

    set: Pairs
    predict: Path
    network: Pairs
    bound: Share
    servers: Number
    svg: Path
    csv: Path


class PlanFleetFlags(TypedDict, total=False):
    """Flags of ``afar plan fleet``."""

    synthetic: Number
    azure: Path
    google: Path
    alibaba: Path
    seed: Number
    hours: Number
    machine: Number
    server: Text
    tenants: Path
    series: Path
    memory: Path
    svg: Path
