import { PackFile as TypesFile } from '../../catalog/packs/format.ts'
import { AgentFile } from '../../cli/agent/tools/file.ts'
import { CalendarFile, GatePolicyFile, PackFile } from '../../operations/packs/schema.ts'
import { ExecutorPolicyFile } from '../../shared/web/executor-policy.ts'
import { ConformanceFile } from '../proving/prove.ts'
import { PackTestFile } from './format.ts'

/** The files that people write, by the name of their schema. */
export const FORMS = {
  pack: PackFile,
  'pack-test': PackTestFile,
  'gate-policy': GatePolicyFile,
  calendar: CalendarFile,
  types: TypesFile,
  agent: AgentFile,
  'agent-conformance': ConformanceFile,
  'executor-policy': ExecutorPolicyFile,
}
export type Form = keyof typeof FORMS

/** The JSON Schema of a file, for editors and validators. */
export const schemaText = (form: Form): string =>
  JSON.stringify({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `Signalbox: ${form}`,
    ...FORMS[form],
  })
