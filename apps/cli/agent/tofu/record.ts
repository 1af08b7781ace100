import { maskIn } from '../../../shared/data/mask.ts'
import { isObject } from '../../../shared/data/pointer.ts'
import { fitting } from '../tools/picture.ts'
import { type Module, stateOf } from './module.ts'

const MAX_OUTPUTS = 200
const MAX_OUTPUT = 4096
const MAX_RESOURCES = 1000
/** Bytes of each list: all outputs of an attempt are limited to 256 KiB. */
export const MAX_LIST = 50_000

/** The catalog's record of a state: its version, its outputs that are not sensitive, and its addresses. */
export type StateRecord = {
  lineage?: string
  serial: number
  outputs: { name: string; value: unknown }[]
  resources: string[]
  resources_count: number
}

/** Reads the record from the state and masks the values of the job's credentials. */
export const recordOf = async (module: Module, mask: (text: string) => string): Promise<StateRecord> => {
  const { lineage, serial, outputs, resources } = (await stateOf(module)) ?? {}
  const addresses = (Array.isArray(resources) ? resources : []).map(({ module, mode, type, name }) =>
    [module, mode === 'data' ? 'data' : undefined, type, name].filter((part) => part !== undefined).join('.'),
  )
  return {
    ...(typeof lineage === 'string' && { lineage }),
    serial: Number(serial ?? 0),
    outputs: fitting(
      Object.entries(isObject(outputs) ? outputs : {}).flatMap(([name, output]) =>
        isObject(output) && output.sensitive !== true ? outputIn(name, output.value, mask) : [],
      ),
      MAX_LIST,
    ).slice(0, MAX_OUTPUTS),
    resources: fitting(addresses.slice(0, MAX_RESOURCES), MAX_LIST),
    resources_count: addresses.length,
  }
}

/** An output as the catalog accepts it: without null, and not too large. */
const outputIn = (name: string, value: unknown, mask: (text: string) => string) => {
  const shown = maskIn(value ?? null, mask)
  return shown === null || JSON.stringify(shown).length > MAX_OUTPUT ? [] : [{ name, value: withoutNull(shown) }]
}

const withoutNull = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.filter((item) => item !== null).map(withoutNull)
    : isObject(value)
      ? Object.fromEntries(
          Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, withoutNull(item)]])),
        )
      : value
