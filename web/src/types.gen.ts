// Written by `python -m misstep.protocol.typescript --write` from core/{messages,payloads}.py; do not edit.

/** A float as JSON carries it: the three that JSON has no word for are words. */
export type Num = number | "NaN" | "Infinity" | "-Infinity";

export const PROTOCOL = 1;
export const SUBPROTOCOL = "misstep.v1";

export interface Ack {
  t: "ack";
  id: string;
  rev: number;
  result: unknown;
}

/** Something a person should see now; `code` and `params` are for the reader's language, `text` is English. */
export interface Alert {
  t: "alert";
  code: string;
  text: string;
  run: string;
  severity: "error" | "info" | "warning";
  params: Record<string, unknown>;
  seq: number;
}

export interface BatchView {
  dtype: string;
  shape: number[];
  digest: string;
}

/** The first bad value of the run. */
export interface BirthView {
  sentence: string;
  node: string;
  step: number;
  rank: number;
  notes: string[];
  command: string;
}

export interface CauseView {
  id: string;
  found_in: string;
  matched: string;
  title: string;
  why: string;
  advice: string;
}

export interface CheckAsk {
  of: string;
  watch?: string[];
  first?: number | null;
  last?: number | null;
  rank?: number | null;
}

/** Checkpoints of one training, by their names, and the tensors that are the same in all of them. */
export interface CheckpointSeries {
  of: string;
  names: string[];
  read: boolean;
  bytes: number;
  unchanged: string[];
}

export interface CheckpointView {
  of: string;
  format: string;
  parameters: number;
  checksum: string;
  summary: string;
  weights: WeightView[];
  extras: Record<string, string>;
}

export type ClientMessage = Hello | Subscribe | Unsubscribe | Command | WatchEdit | TensorGet | Ping;

/** Move a run. `rev` is the revision the sender saw; a stale one is refused; None for a sender that did not look. */
export interface Command {
  t: "cmd";
  id: string;
  op: "continue" | "detach" | "granularity" | "next" | "pause" | "pynative" | "recheck" | "reset" | "run_to" | "step" | "terminate" | "until";
  run: string;
  rev?: number | null;
  rank?: number | null;
  count?: number;
  condition?: string;
  node?: string;
  phase?: "backward" | "forward" | "input" | "loss" | "optimizer" | null;
  when?: "after" | "before" | null;
  call?: number | null;
  granularity?: "module" | "operator" | null;
  steps?: string;
}

export interface ComparisonAsk {
  a: string;
  b: string;
  map?: string;
}

/** A row for each pair in execution order, and for each parameter that is missing on one side. */
export interface ComparisonColumns {
  left: string[];
  right: string[];
  left_node: string[];
  right_node: string[];
  left_address: string[];
  right_address: string[];
  type: string[];
  dtype: string[];
  shape: number[][];
  step: (number | null)[];
  source: string[];
  verdict: ("different" | "dtype" | "identical" | "missing" | "noise" | "shape")[];
  part: ("" | "cause" | "consequence")[];
  how: string[];
  layout: string[];
  note: string[];
  count: number[];
  equal: number[];
  relative: (Num | null)[];
  expected: (Num | null)[];
  max_abs: (Num | null)[];
  max_rel: (Num | null)[];
  cosine: (Num | null)[];
  max_ulp: (Num | null)[];
  share_within: (Num | null)[];
}

export interface ComparisonHeader {
  a: string;
  b: string;
  mode: "a" | "absolute" | "b" | "difference" | "relative" | "ulp";
  slice: string;
  sliced_shape: number[];
  data_dtype: string;
  data_shape: number[];
  bytes: number;
  differences: Differences;
  id: string;
  tile: Tile | null;
  a_stats: StatsView | null;
  b_stats: StatsView | null;
}

export interface ComparisonTable {
  id: string;
  a: string;
  b: string;
  map: string;
  close: boolean;
  summary: string;
  counts: Record<string, number>;
  first: number;
  cause: number;
  rows: ComparisonColumns;
  only_left: Unmatched[];
  only_right: Unmatched[];
  notes: string[];
  seconds: number;
  dtypes: string[];
  sections: ("optimizer" | "weights")[];
}

export interface ConditionView {
  name: string;
  title: string;
  help: string;
  category: string;
  parameters: ParameterView[];
  needs: string[];
}

/** What ended a process, or why a record of it was made. */
export interface CrashEvent {
  kind: string;
  name: string;
  text: string;
  code: number | null;
  seconds: number;
  memory_killer: boolean;
}

export interface CrashNews {
  t: "crash";
  run: string;
  id: string;
  text: string;
  seq: number;
}

export interface CrashReport {
  run: string;
  record: string;
  kind: string;
  time: number;
  bytes: number;
  endings: RankEnding[];
  causes: CauseView[];
  events: JournalLine[];
  reached: ReachedView | null;
  trail: string[];
  threads: ThreadView[];
  machine: string[];
  stacks: Record<string, string>;
  kernel_threads: KernelThread[];
  steps: RecordedStep[];
  memory: Record<string, number>;
  limits: Record<string, number>;
  holders: HolderView[];
  batch: BatchView[];
  log: string[];
  random: Record<string, string>;
  command: string[];
  host: string;
  started: number;
  versions: Record<string, string>;
  device: Record<string, string>;
  git: Record<string, string>;
  environment: Record<string, string>;
  settings: Record<string, unknown>;
  problems: string[];
  values: KeptValue[];
  left_out: number;
}

/** Where a process was. */
export interface CrashSpot {
  step: number;
  phase: string;
  node: string;
  type: string;
  source: string;
  code: string;
  function: string;
}

/** One thing that is wrong, with evidence, line and change. */
export interface DiagnosisFinding {
  rule: string;
  title: string;
  severity: "error" | "info" | "warning";
  confidence: number | null;
  evidence: string[];
  source: string;
  advice: string;
  cause: string;
  step: number | null;
  rank: number | null;
}

/** Why a run does not learn. */
export interface DiagnosisView {
  healthy: boolean;
  known: boolean;
  steps: number;
  looks: number;
  rules: number;
  findings: DiagnosisFinding[];
  families: FamilyView[];
  layers: string[];
  gradients: (number | null)[];
  updates: (number | null)[];
  losses: (number | null)[];
}

/** Two tensors, element by element. */
export interface Differences {
  count: number;
  out_of_tolerance: number;
  max_absolute: Num;
  mean_absolute: Num;
  max_relative: Num;
  max_ulp: number;
  cosine: Num;
  l2: Num;
  atol: number;
  rtol: number;
  same_nonfinite: boolean;
  worst: number[];
}

/** What a watchpoint would do on the tensors that are there now. */
export interface DryRun {
  hits: number;
  tensors: number;
  bytes_per_step: number;
  seconds_per_step: number;
  memory_bytes: number;
  examples: HitView[];
  note: string;
}

/** A tensor that was kept. */
export interface DumpRow {
  address: string;
  node: string;
  role: string;
  slot: number;
  call: number;
  type: string;
  dtype: string;
  shape: number[];
  bytes: number;
  order: number;
  source: string;
  stats: StatsView | null;
}

export interface DumpTable {
  of: string;
  kind: "checkpoint" | "dump" | "run";
  format: string;
  moments: Moment[];
  step: number | null;
  rank: number;
  query: string;
  total: number;
  offset: number;
  rows: DumpRow[];
  asked: string[];
  dropped: number;
  dropped_names: string[];
  note: string;
}

export interface EdgeColumns {
  source: number[];
  target: number[];
  source_slot: number[];
  target_slot: number[];
  dtype: number[];
  shape: number[];
}

/** Any REST error: a code for programs, a sentence for people. */
export interface Failure {
  code: string;
  text: string;
  params: Record<string, unknown>;
  text_zh: string;
}

/** One family of rules: what it found, and what it could not look at. */
export interface FamilyView {
  name: string;
  label: string;
  findings: number;
  missing: string[];
}

/** Something wrong or slow, with its evidence and the next command. */
export interface FindingView {
  rule: string;
  title: string;
  severity: "error" | "info" | "warning";
  step: number | null;
  rank: number | null;
  evidence: string[];
  advice: string;
  command: string;
}

/** The next element that is not finite, in the order of the slice's memory; None when there is none. */
export interface Found {
  index: number[] | null;
  value: Num | null;
}

export interface FoundNode {
  name: string;
  type: string;
  kind: "buffer" | "input" | "loss" | "module" | "operator" | "optimizer" | "parameter";
  order: number;
  index: number;
  hits: number;
  watched: boolean;
  source: SourceView | null;
}

export interface FrameView {
  file: string;
  line: number;
  function: string;
  code: string;
  library: boolean;
  locals: Record<string, string>;
}

export interface GraphColumns {
  run: string;
  rank: number;
  rev: number;
  scopes: ScopeColumns;
  nodes: NodeColumns;
  edges: EdgeColumns;
  tensors: TensorColumns;
  types: string[];
  files: string[];
  graphs: string[];
  dtypes: string[];
  shapes: number[][];
  roles: string[];
}

/** The graph grew: fetch it again, with the ETag of the old one. */
export interface GraphNews {
  t: "graph";
  run: string;
  rank: number;
  rev: number;
  nodes: number;
  edges: number;
  seq: number;
}

export interface Hello {
  t: "hello";
  proto: number;
  lang?: string;
  resume?: Resume | null;
}

export interface Histogram {
  edges: number[];
  counts: number[];
  nan: number;
  pos_inf: number;
  neg_inf: number;
}

export interface HitList {
  hits: HitView[];
  total: number;
  by_watchpoint: Record<string, number>;
  origins: number;
  dropped: number;
}

/** A watchpoint tripped. Never dropped. */
export interface HitNews {
  t: "hit";
  run: string;
  hit: HitView;
  seq: number;
}

export interface HitView {
  id: number;
  watchpoint: number;
  address: string;
  node: string;
  role: string;
  slot: number;
  step: number;
  rank: number;
  reason: string;
  call: number;
  severity: "error" | "info" | "warning";
  birth: "origin" | "propagated" | "unknown";
  order: number;
  condition: string;
  stats: StatsView | null;
  readings: ReadingView[];
  errors: ("inf" | "nan" | "no_previous" | "no_value" | "out_of_memory")[];
  outdated: boolean;
  reason_zh: string;
}

/** Who held memory. */
export interface HolderView {
  name: string;
  kind: string;
  bytes: number;
  count: number;
  dtype: string;
  shape: number[];
}

export interface JobView {
  id: string;
  state: "cancelled" | "done" | "failed" | "running" | "waiting";
  done: number;
  total: number;
  seconds: number;
  text: string;
}

export interface JournalLine {
  kind: string;
  rank: number;
  time: number;
  text: string;
}

/** A whole tensor that travels in the record. */
export interface KeptValue {
  address: string;
  dtype: string;
  shape: number[];
}

/** A thread as the operating system saw it. */
export interface KernelThread {
  id: string;
  name: string;
  state: string;
  waits_in: string;
}

/** What is said of runs: tags given and taken, a note, a pin; None leaves a thing as it is. */
export interface LabelEdit {
  runs: string[];
  add: string[];
  remove: string[];
  note: string | null;
  pinned: boolean | null;
}

/** The client was too slow: so many superseded updates were left out, by kind. Never hits, states or watchpoints. */
export interface Lag {
  t: "lag";
  dropped: Record<string, number>;
  seq: number;
}

export interface LogLine {
  t: "log";
  run: string;
  rank: number;
  level: "debug" | "error" | "info" | "warning";
  text: string;
  seq: number;
  text_zh: string;
}

/** A map file, TOML or JSON; `id` names it in links. */
export interface MapText {
  text: string;
  id?: string;
}

/** One step of one rank of a thing, and how much of it was kept; step is None where nobody counted. */
export interface Moment {
  step: number | null;
  rank: number;
  tensors: number;
  bytes: number;
}

/** Refused: stale_state, not_paused, not_running, unsupported, denied, bad_request, not_found, timeout. */
export interface Nack {
  t: "nack";
  id: string;
  code: string;
  text: string;
  params: Record<string, unknown>;
  text_zh: string;
}

export interface Neighbour {
  node: string;
  slot: number;
  dtype: string;
  shape: number[];
}

/** Nodes by number, as in the run's catalog; `type`, `file` and `graph` are numbers into its lists. */
export interface NodeColumns {
  name: string[];
  scope: number[];
  kind: ("buffer" | "input" | "loss" | "module" | "operator" | "optimizer" | "parameter")[];
  phase: ("backward" | "forward" | "input" | "loss" | "optimizer")[];
  type: number[];
  order: number[];
  file: number[];
  line: number[];
  graph: number[];
  forward: number[];
}

export interface NodeInfo {
  name: string;
  type: string;
  kind: "buffer" | "input" | "loss" | "module" | "operator" | "optimizer" | "parameter";
  phase: "backward" | "forward" | "input" | "loss" | "optimizer";
  scope: string;
  order: number;
  graph: string;
  forward: string;
  backward: string[];
  source: SourceView | null;
  tensors: TensorBrief[];
  producers: Neighbour[];
  consumers: Neighbour[];
  children: number;
  watched_by: number[];
  hits: number[];
  same_line: string[];
}

export interface ParameterView {
  name: string;
  type: "flag" | "number";
  default: Num | boolean | null;
  required: boolean;
  help: string;
}

export interface PassedNode {
  order: number;
  node: string;
  type: string;
  phase: string;
  done: boolean;
  here: boolean;
  source: string;
  code: string;
}

export interface Ping {
  t: "ping";
  id?: string;
}

/** Where training stands inside a step. */
export interface PlaceView {
  node: string;
  phase: "backward" | "forward" | "input" | "loss" | "optimizer";
  when: "after" | "before";
  kind: "module" | "operator" | "optimizer";
  type: string;
  call: number;
  source: SourceView | null;
}

export interface Pong {
  t: "pong";
  id: string;
}

/** A command or an edit that waits for its moment. */
export interface QueuedView {
  id: string;
  op: string;
  text: string;
  text_zh: string;
}

export interface RankEnding {
  rank: number;
  event: CrashEvent;
  spot: CrashSpot;
  last_step: number;
  last_time: number;
  collective: string;
  waiting_seconds: number;
  collectives: number;
  culprit: boolean;
}

export interface RankView {
  rank: number;
  phase: "detached" | "ended" | "lost" | "offline" | "paused" | "pausing" | "running" | "stepping" | "terminating";
  step: number;
  rev: number;
  place: PlaceView | null;
  reason: Reason | null;
  host: string;
  pid: number;
  alive: boolean;
  dropped: Record<string, number>;
  memory_bytes: number;
  memory_limit: number;
  queued: QueuedView[];
}

/** Positions `first` to `last` of `total` in execution order: somewhere there the process ended. */
export interface ReachedView {
  first: number;
  last: number;
  total: number;
  nodes: PassedNode[];
  phases: Record<string, number>;
}

/** One parameter of a condition: threshold, what was found, whether it tripped. */
export interface ReadingView {
  parameter: string;
  threshold: Num | boolean;
  actual: Num | null;
  hit: boolean;
}

/** Why training stands still, or ended. */
export interface Reason {
  kind: "across_ranks" | "end" | "node" | "other_rank" | "signal" | "start" | "step" | "step_end" | "until" | "user" | "watchpoint";
  text: string;
  watchpoint: number | null;
  hit: number | null;
  rank: number | null;
  text_zh: string;
}

/** A bundle of a run. */
export interface RecordBrief {
  id: string;
  time: number;
  bytes: number;
}

export interface RecordList {
  records: RecordBrief[];
  can_make: boolean;
}

export interface RecordedStep {
  step: number;
  time: number;
  seconds: number;
  loss: Num | null;
  learning_rate: Num | null;
  memory: Record<string, number>;
}

/** A run that was left as it is, and why. */
export interface Refusal {
  run: string;
  text: string;
  text_zh: string;
}

/** Runs to delete for good. */
export interface Removal {
  runs: string[];
}

export interface Removed {
  runs: string[];
  refused: Refusal[];
}

/** Events were left out: fetch the snapshot and the hits after `since`, then go on from `seq`. */
export interface Reset {
  t: "reset";
  snapshot_url: string;
  seq: number;
  session: string;
  since: number;
}

export interface Resume {
  session: string;
  seq: number;
}

/** A line in the list of runs. */
export interface RunBrief {
  run: string;
  state: "failed" | "finished" | "lost" | "paused" | "running" | "starting" | "stopped";
  live: boolean;
  started: number;
  phase: "detached" | "ended" | "lost" | "offline" | "paused" | "pausing" | "running" | "stepping" | "terminating";
  step: number;
  loss: Num | null;
  world_size: number;
  ranks: number[];
  host: string;
  command: string[];
  hits: number;
  spark: (Num | null)[];
  found: string;
  found_zh: string;
  bad: "" | "inf" | "nan";
  params: Record<string, number | string | boolean>;
  tags: string[];
  note: string;
  pinned: boolean;
}

export interface RunDetail {
  brief: RunBrief;
  versions: Record<string, string>;
  git: Record<string, string>;
  settings: Record<string, unknown>;
  ranks: RankView[];
  watchpoints: WatchpointView[];
  tags: string[];
  first_step: number;
  last_step: number;
  stats_steps: number[];
  tensor_steps: number[];
  graph_rev: number;
  seconds: number;
  exit_code: number | null;
  findings: number;
  records: string[];
}

export interface RunList {
  runs: RunBrief[];
  total: number;
  directory: string;
}

/** A run appeared or its line in the list changed. */
export interface RunNews {
  t: "run";
  run: RunBrief;
  seq: number;
}

export interface RunStory {
  birth: BirthView | null;
  findings: FindingView[];
  notes: string[];
  clean: boolean;
}

/** A curve, thinned to the wanted points by keeping the least and the greatest of every bucket. */
export interface ScalarSeries {
  tag: string;
  rank: number;
  x: number[];
  y: (Num | null)[];
  total: number;
  method: "all" | "min-max";
  time: number[];
}

/** Points of a curve, batched. */
export interface Scalars {
  t: "scalars";
  run: string;
  rank: number;
  tag: string;
  x: number[];
  y: (Num | null)[];
  seq: number;
}

/** Scopes by number; scope 0 is the outermost, with an empty label and parent -1. */
export interface ScopeColumns {
  parent: number[];
  label: string[];
  name: string[];
}

export interface SearchResult {
  query: string;
  total: number;
  nodes: FoundNode[];
}

export type ServerMessage = Welcome | State | StepNews | Scalars | HitNews | WatchNews | GraphNews | LogLine | Alert | RunNews | CrashNews | Ack | Nack | Lag | Reset | Pong;

export interface SourceLine {
  file: string;
  line: number;
  code: string;
  nodes: string[];
  total: number;
}

export interface SourceList {
  lines: SourceLine[];
  total: number;
}

export interface SourceView {
  file: string;
  line: number;
  code: string;
}

export interface SpeedAdvice {
  rule: string;
  what: string;
  why: string;
  threshold: string;
  predicted: number | null;
  low: number | null;
  high: number | null;
  where: string;
  tried: boolean;
}

export interface SpeedOperator {
  name: string;
  share: number;
  phase: string;
  where: string;
}

export interface SpeedStage {
  name: string;
  share: number;
  ms: number;
  where: string;
  depth: number;
}

export interface SpeedTrial {
  name: string;
  predicted: number | null;
  before: number | null;
  after: number | null;
  kept: boolean;
  outcome: string;
}

/** One rank's steps, in columns; milliseconds. */
export interface SpeedView {
  rank: number;
  steps: number[];
  segments: string[];
  words: string[];
  spent: number[][];
  step: number;
  p50: number;
  p90: number;
  p99: number;
  first: number;
  compile: number;
  data_share: number;
  empty: number | null;
  period: number;
  bound: string;
  verdict: string;
  why: string;
  memory_most: number;
  loader: string;
  make: number | null;
  workers: number | null;
  advice: SpeedAdvice[];
  trials: SpeedTrial[];
  stages: SpeedStage[];
  operators: SpeedOperator[];
  profiled: number;
  unknown: string[];
  nothing: string;
}

/** Where a run is. Never dropped. `rev` grows with every change that could make somebody's command wrong. */
export interface State {
  t: "state";
  run: string;
  rev: number;
  phase: "detached" | "ended" | "lost" | "offline" | "paused" | "pausing" | "running" | "stepping" | "terminating";
  step: number;
  seq: number;
  epoch: number | null;
  place: PlaceView | null;
  reason: Reason | null;
  ranks: RankView[];
  granularity: "module" | "operator";
  queued: QueuedView[];
  goal: string;
  compiled: boolean;
}

/** The statistics of one tensor over steps. */
export interface StatsHistory {
  address: string;
  step: number[];
  columns: Record<string, Num[]>;
  dtype: string;
  shape: number[];
  total: number;
}

export interface StatsView {
  count: number;
  nan: number;
  pos_inf: number;
  neg_inf: number;
  zeros: number;
  negatives: number;
  positives: number;
  min: Num;
  max: Num;
  mean: Num;
  abs_mean: Num;
  l2: Num;
  std: Num;
  dtype: string;
  shape: number[];
}

/** A step ended. Superseded by the next; a slow client misses some and is told. */
export interface StepNews {
  t: "step";
  run: string;
  rank: number;
  step: number;
  seq: number;
  loss: Num | null;
  seconds: number;
  epoch: number | null;
}

/** Everything one step showed: a row for each tensor, in execution order. */
export interface StepTable {
  run: string;
  rank: number;
  step: number;
  tensor: number[];
  dtype: string[];
  shape: number[][];
  inputs_bad: boolean[];
  columns: Record<string, Num[]>;
  loss: Num | null;
  seconds: number;
}

/** A study in the list. */
export interface StudyBrief {
  study: string;
  storage: string;
  trials: number;
  wanted: number;
  states: Record<string, number>;
  best: Num | null;
  target: string;
  changed: number;
  problem: string;
}

/** A study, one column a fact. */
export interface StudyColumns {
  study: string;
  targets: string[];
  goals: string[];
  parameters: string[];
  log: string[];
  wanted: number;
  words: string[];
  number: number[];
  state: number[];
  values: ((Num | null)[])[];
  params: ((string | number | boolean | null)[])[];
  run: string[];
  ended: string[];
  why: string[];
  steps: number[];
  seconds: number[];
  best: number[];
  command: string;
}

export interface StudyCurve {
  number: number;
  x: number[];
  y: (Num | null)[];
}

export interface StudyCurves {
  curves: StudyCurve[];
}

export interface StudyImportance {
  names: string[];
  shares: number[];
  problem: string;
}

export interface StudyList {
  studies: StudyBrief[];
}

/** Which events to send; `scalars:loss*` narrows by tag. An empty run means every run. */
export interface Subscribe {
  t: "sub";
  id: string;
  ch: string[];
  run?: string;
  max_hz?: number;
}

/** A tensor of a node at a step, with a small history. */
export interface TensorBrief {
  address: string;
  role: string;
  slot: number;
  call: number;
  stats: StatsView | null;
  available: boolean;
  reason: string;
  spark: (Num | null)[];
}

/** Every tensor of the run by number: node, role, slot, call. */
export interface TensorColumns {
  node: number[];
  role: number[];
  slot: number[];
  call: number[];
}

/** Ask for a tensor by address; answered by a binary frame with a TensorHeader, or a Nack saying why not. */
export interface TensorGet {
  t: "tensor.get";
  id: string;
  run: string;
  address: string;
  slice?: string;
  want?: string[];
}

/** In front of a tile's bytes: u32 little-endian header length, this as JSON, then `bytes` bytes in C order. */
export interface TensorHeader {
  address: string;
  dtype: string;
  shape: number[];
  slice: string;
  sliced_shape: number[];
  data_dtype: string;
  data_shape: number[];
  bytes: number;
  origin: "live" | "stored";
  id: string;
  tile: Tile | null;
  stats: StatsView | null;
  histogram: Histogram | null;
  found: Found | null;
  step: number | null;
  rank: number;
}

/** Something that holds tensors and can be opened by its name. */
export interface Thing {
  name: string;
  kind: "checkpoint" | "dump" | "run";
  format: string;
  bytes: number;
  modified: number;
  live: boolean;
}

export interface ThingList {
  things: Thing[];
  directory: string;
  more: boolean;
}

export interface ThreadView {
  name: string;
  main: boolean;
  frames: FrameView[];
}

/** A rectangle of the sliced tensor; row and column count pooled blocks when pool > 1. */
export interface Tile {
  row: number;
  column: number;
  rows: number;
  columns: number;
  pool: number;
}

/** The tensor is known but its values are not here: why, and the command that gets them. */
export interface Unavailable {
  address: string;
  reason: "freed" | "no_such_step" | "not_captured" | "not_watched" | "other_rank" | "running" | "too_large" | "unknown";
  text: string;
  code: string;
}

export interface Unmatched {
  name: string;
  node: string;
  type: string;
  dtype: string;
  shape: number[];
  address: string;
}

export interface Unsubscribe {
  t: "unsub";
  id: string;
}

/** The one answer of a run: landing, star, banner and list all come from it. */
export interface VerdictView {
  kind: "exception" | "inf" | "nan";
  node: string;
  step: number;
  rank: number;
  phase: string;
  op: string;
  slot: string;
  title: string;
  evidence: string[];
  source: SourceView | null;
  precision: "module" | "operator" | "step";
  samples: number[];
  command: string;
  inputs: string[];
}

/** Change the watchpoints of a run; `watch_scope`/`unwatch_scope` add or take every node below `scope`. */
export interface WatchEdit {
  t: "watch";
  id: string;
  op: "add" | "disable" | "dry_run" | "dump" | "enable" | "recommend" | "remove" | "unwatch_scope" | "update" | "watch_scope";
  run: string;
  watchpoint?: number | null;
  spec?: WatchSpec | null;
  scope?: string;
  rank?: number | null;
}

export interface WatchList {
  watchpoints: WatchpointView[];
  memory_bytes: number;
  memory_limit: number;
}

/** A watchpoint was added, changed or removed. Never dropped. */
export interface WatchNews {
  t: "wp";
  run: string;
  op: "add" | "remove" | "update";
  watchpoint: WatchpointView;
  seq: number;
}

/** A watchpoint as a client writes it: a condition's name or an expression, parameters, and where. */
export interface WatchSpec {
  condition?: string;
  parameters?: Record<string, number | boolean>;
  on?: string[];
  nodes?: string[];
  but?: string[];
  types?: string[];
  then?: "dump" | "note" | "pause" | "stop";
  limit?: number | null;
  name?: string;
}

export interface WatchpointView {
  id: number;
  condition: string;
  parameters: Record<string, Num | boolean>;
  on: string[];
  nodes: string[];
  then: "dump" | "note" | "pause" | "stop";
  enabled: boolean;
  limit: number | null;
  name: string;
  origin: "guard" | "recommended" | "user";
  tensors: number | null;
  hits: number;
  but: string[];
  types: string[];
  note: string;
}

/** One tensor of a checkpoint. */
export interface WeightView {
  name: string;
  address: string;
  section: "optimizer" | "weights";
  dtype: string;
  shape: number[];
  bytes: number;
  trainable: boolean | null;
  state: "all zero" | "constant" | "exploding" | "fine" | "inf" | "nan" | "unreadable";
  stats: StatsView;
}

/** The answer to Hello. After a resume the missed events follow; else a State of every live run. */
export interface Welcome {
  t: "welcome";
  session: string;
  seq: number;
  server: string;
  proto: number;
  caps: string[];
  resumed: boolean;
  runs: RunBrief[];
}
