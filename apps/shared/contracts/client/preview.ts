import Type, { type Static } from 'typebox'

/** A tool's forecast of its changes, made by an agent beforehand (operations.md 7.5). Readers import only its types. */
const Field = Type.Object({
  path: Type.String(),
  before: Type.Optional(Type.Unknown()),
  after: Type.Optional(Type.Unknown()),
  /** The value is known only after the change. */
  unknown: Type.Optional(Type.Boolean()),
  /** It changes, but its value is shown to no one. */
  sensitive: Type.Optional(Type.Boolean()),
  /** The server sets it itself: folded, and part of the digest. */
  noise: Type.Optional(Type.Boolean()),
})
const Change = Type.Object({
  id: Type.String(),
  action: Type.String(),
  /** Additional information for the reader, such as whose fields it takes. */
  note: Type.Optional(Type.String()),
  fields: Type.Array(Field),
  fields_count: Type.Optional(Type.Integer()),
  /** Over the whole diff, including the part that is not shown. */
  digest: Type.Optional(Type.String()),
})
export const Preview = Type.Object({
  format: Type.Literal('signalbox/preview@1'),
  /** `exact`: exactly the preview read is carried out. `checked`: it is read again first. `forecast`: no promise. */
  binding: Type.Enum(['exact', 'checked', 'forecast']),
  tool: Type.String(),
  source_digest: Type.String(),
  /** The commit of a source that is in a repository, and the branch that was asked for. */
  source: Type.Optional(
    Type.Object({
      repo: Type.String(),
      ref: Type.String(),
      commit: Type.String({ pattern: '^[0-9a-f]{40}([0-9a-f]{24})?$' }),
    }),
  ),
  changes: Type.Array(Change),
  changes_count: Type.Integer(),
  /** Every action with its kind, also of changes that are not listed. Older agents bring none. */
  kinds: Type.Optional(Type.Array(Type.String())),
  digest: Type.String(),
  counts: Type.Record(Type.String(), Type.Integer()),
  unknowns: Type.Integer(),
  drift: Type.Integer(),
  no_change: Type.Boolean(),
})
/** opentofu: the sealed plan file, and the state that it is based on. */
export const SavedPlan = Type.Object({
  ...Preview.properties,
  /** The plan covers only these and their dependencies. */
  targets: Type.Optional(Type.Array(Type.String())),
  /** Where its state is, as far as the step chose it; the digest is over the unmasked rest. Older agents do not state it. */
  place: Type.Optional(
    Type.Object({
      source: Type.String(),
      workspace: Type.String(),
      backend: Type.Record(Type.String(), Type.String()),
      digest: Type.String(),
    }),
  ),
  base: Type.Object({ lineage: Type.Union([Type.String(), Type.Null()]), serial: Type.Integer() }),
  /** `key`: the key that sealed it, as agents name theirs by the label seal_key. */
  plan: Type.Object({
    sha256: Type.String(),
    content_sha256: Type.String(),
    key: Type.Optional(Type.String({ pattern: '^[0-9a-f]{8}$' })),
  }),
})
/** git: the commit to push, the current positions of the branches, and the branch's position afterwards. */
export const CommitPreview = Type.Object({
  ...Preview.properties,
  head: Type.String(),
  branch_head: Type.Union([Type.String(), Type.Null()]),
  commit: Type.String(),
})
/** ansible: a run in check mode. */
export const CheckRun = Type.Object({
  ...Preview.properties,
  inputs_digest: Type.String(),
  /** Tasks that check mode skips, as the tool names them. */
  unforeseen: Type.Array(Type.String()),
})
/** kubernetes: the sealed objects, and the cluster that checked them. */
export const ObjectSet = Type.Object({
  ...Preview.properties,
  cluster: Type.String(),
  set: Type.String(),
  plan: SavedPlan.properties.plan,
  /** Objects that the server could not check yet. */
  unforeseen: CheckRun.properties.unforeseen,
})
export type SavedPlan = Static<typeof SavedPlan>
export type CommitPreview = Static<typeof CommitPreview>
export type CheckRun = Static<typeof CheckRun>
export type ObjectSet = Static<typeof ObjectSet>
/** Each kind has additional members. */
export type Preview = Static<typeof Preview> & Partial<SavedPlan & CommitPreview & CheckRun & ObjectSet>
export type PreviewChange = Static<typeof Change>
export type PreviewField = Static<typeof Field>

/** The key of a module may be any text, also one with brackets. */
const OF_TOFU = /^(?:module\.[^.[]+(?:\["(?:[^"\\]|\\.)*"\]|\[[^"\]]*\])?\.)*(?:data\.)?([a-z0-9_]+)\.[^ ]/
/** "module.a[0].aws_instance.web" is an aws_instance, "Deployment.apps web/api" a Deployment.apps. */
export const kindOf = (action: string, id: string): string =>
  `${action} ${OF_TOFU.exec(id)?.[1] ?? id.split(/[ /]/)[0] ?? ''}`
