import Type, { type Static } from 'typebox'
import { Closed } from '../contracts/shapes.ts'
import { compileSchema } from './json-schema.ts'

/** The programs that an executor policy lets steps run, by the name that plans use (operations.md 7.3). */
export const Programs = Type.Record(
  Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' }),
  Closed({
    path: Type.String({ minLength: 2, maxLength: 1000, pattern: '^/' }),
    /** They precede the arguments of a step; options belong here. */
    options: Type.Optional(Type.Array(Type.String({ maxLength: 1000 }), { maxItems: 100 })),
    /** False: the program does not know `--`, so no argument of a step may begin with a dash. */
    end_of_options: Type.Optional(Type.Boolean()),
    /** JSON Schema of the list of arguments of a step. */
    args: Type.Unknown(),
    /** Names of variables that a step may set; one that it omits comes from the worker. */
    env: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,99}$' }), { maxItems: 100 })),
    uid: Type.Optional(Type.Integer({ minimum: 1, maximum: 4_294_967_294 })),
    gid: Type.Optional(Type.Integer({ minimum: 1, maximum: 4_294_967_294 })),
    memory_mib: Type.Optional(Type.Integer({ minimum: 16, maximum: 1_048_576 })),
  }),
)

export type Program = Static<typeof Programs>[string] & {
  /** Returns why the program cannot take these arguments; `undefined` if it can. */
  refuse: (args: readonly string[]) => string | undefined
}

/** Returns programs with compiled argument schemas. Throws an Error that names the invalid member. */
export const programsOf = (given: Static<typeof Programs>): ReadonlyMap<string, Program> =>
  new Map(
    Object.entries(given).map(([name, program]) => {
      try {
        const check = compileSchema(program.args)
        return [name, { ...program, refuse: (args) => refuseArgs(program, check(args), args) }]
      } catch (error) {
        throw new Error(`/programs/${name}/args: ${(error as Error).message}`)
      }
    }),
  )

const refuseArgs = (
  { end_of_options = true }: Static<typeof Programs>[string],
  [fault]: readonly { pointer: string; message: string }[],
  args: readonly string[],
): string | undefined => {
  if (fault) return `argument ${fault.pointer.slice(1) || 'list'} ${fault.message}`
  // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these are refused
  const broken = args.findIndex((arg) => /[\u0000\n\r]/.test(arg))
  if (broken >= 0) return `argument ${broken} contains a line break or a NUL`
  const option = end_of_options ? -1 : args.findIndex((arg) => arg.startsWith('-'))
  return option >= 0 ? `argument ${option} starts with a dash` : undefined
}
