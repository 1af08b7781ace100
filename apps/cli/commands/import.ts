import type { Command } from '../command.ts'
import type { Kind } from '../import/run/act.ts'

const OPTIONS = {
  'source-name': { type: 'string', value: 'NAME', about: 'the name of the source system' },
  into: { type: 'string', value: 'RESOURCE', about: 'the container of items without one' },
  adopt: { type: 'boolean', about: 'take over resources of the same name' },
  force: { type: 'boolean', about: 'overwrite fields that people or operations changed since' },
  'mark-missing': { type: 'boolean', about: 'label resources that the file no longer names' },
  prune: { type: 'boolean', about: 'retire resources that this source made and no longer names, after a review' },
  strict: { type: 'boolean', about: 'refuse the import if a field would be lost' },
  report: { type: 'string', value: 'FILE', about: 'write the whole report, with every lost field, as JSON' },
  map: { type: 'string', value: 'FILE', about: 'maps foreign kinds to resource types' },
  only: { type: 'string', value: 'TYPES', about: 'import these types or kinds only' },
  'leave-out': { type: 'string', value: 'TYPES', about: 'skip these types or kinds' },
  batch: { type: 'string', value: 'N', about: 'items per job, at most 1000' },
} as const
const MAPPING = { mapping: { type: 'string', value: 'FILE', about: 'maps columns to items (required)' } } as const

type Importer = { kind: Kind; about: string; mapped?: boolean; examples: string[] }

const importer = ({ kind, about, mapped = false, examples }: Importer): Command => ({
  name: `import ${kind}`,
  takes: 'FILE',
  about: `${about} A repeated import changes nothing, and an interrupted one continues in the catalog. --dry-run shows the differences; --report FILE lists every field that no type has.`,
  options: mapped ? { ...MAPPING, ...OPTIONS } : OPTIONS,
  examples,
  repeats: 0,
  run: async (context, [file = ''], values) =>
    // Only an import pays for the readers and their schemas.
    (await import('../import/run/act.ts')).runImport(kind, context, file, values),
})

/** Imports from files of other systems, through the public API. */
export const importCommands: Command[] = [
  importer({
    kind: 'netbox',
    about: 'Rows of NetBox: dumpdata, or endpoints of its API with their rows.',
    examples: [
      'import netbox netbox.json --source-name netbox --dry-run',
      'import netbox netbox.json --source-name netbox --prune --report loss.json',
    ],
  }),
  importer({
    kind: 'kubernetes',
    about: 'Objects of a cluster, as YAML documents or a JSON list.',
    examples: ['import kubernetes cluster.yaml --source-name prod --into eu1-a'],
  }),
  importer({
    kind: 'terraform',
    about: 'A state of Terraform or OpenTofu (version 4), or `terraform show -json`.',
    examples: ['import terraform terraform.tfstate --source-name shop --into eu1-a'],
  }),
  importer({
    kind: 'csv',
    about: 'Rows of a CSV file, whose first line names the columns.',
    mapped: true,
    examples: ['import csv hosts.csv --mapping hosts.map.yaml --source-name cmdb --into eu1-a'],
  }),
  importer({
    kind: 'json',
    about: 'Rows of a JSON or YAML file.',
    mapped: true,
    examples: ['import json hosts.json --mapping hosts.map.yaml --source-name cmdb --strict'],
  }),
]
