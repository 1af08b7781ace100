import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isStorable, type JsonLimits, scanJson } from '../data/json.ts'
import { AppError } from '../errors.ts'
import type { EdgeCodes } from './edge-codes.ts'
import type { JsonSchema } from './example.ts'

const JSON_TYPES = /^application\/(json|merge-patch\+json|json-patch\+json|scim\+json)(\s*;|$)/i
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** The parser would skip it, but other readers of the same bytes refuse it. */
const BYTE_ORDER_MARK = '\uFEFF'
const UTF8_ONLY = /^[^;]+(;\s*charset="?utf-8"?\s*)?$/i
/** Spellings of values that may not fit: U+0000, surrogates (a half may be missing), numbers beyond double precision. */
const SUSPECT = /\\u(0000|[dD][89a-fA-F])|\d[eE][+-]?\d{3}|\d{200}/

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Bounds of this route's body if they differ from the app's: for a list of documents. */
    json_limits?: JsonLimits
  }
}

/** An area's codes for the refusals of this parser. */
type Codes = Pick<EdgeCodes, 'media_type' | 'malformed' | 'text'>

/**
 * The only body parser: JSON in UTF-8 with a content type that the route takes, within these limits, without repeated
 * members, prototypes or values that cannot be stored. Everything else is refused.
 */
export const acceptJson = (app: FastifyInstance, limits: JsonLimits, codes: Codes): void => {
  const parse = app.getDefaultJsonParser('error', 'error')
  const malformed = (detail: string) =>
    new AppError('validation_error', codes.malformed, detail, {
      status: 400,
      hint: 'Send exactly one JSON document in UTF-8.',
    })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>(JSON_TYPES, { parseAs: 'buffer' }, (req, body, done) => {
    if (!isTaken(req)) return done(otherMediaType(codes, req))
    if (body.length === 0) return done(null, undefined)
    let text: string
    try {
      text = UTF8.decode(body)
    } catch {
      return done(malformed('The body is not valid UTF-8.'))
    }
    if (text.startsWith(BYTE_ORDER_MARK)) return done(malformed('The body begins with a byte order mark.'))
    try {
      scanJson(text, req.routeOptions.config.json_limits ?? limits)
    } catch (error) {
      return done(error as AppError)
    }
    parse(req, text, (error, value) => {
      if (error) return done(malformed(faultOf(text)))
      const pointer = SUSPECT.test(text) ? pointerToUnstorable(spelled(text)) : undefined
      if (pointer !== undefined) return done(unstorable(codes, pointer))
      done(null, value)
    })
  })
}

/** Whether every member of this body may be left out. */
export const isOmissible = (schema: JsonSchema | undefined): boolean => {
  const { type, required = [], properties = {} } = schema ?? {}
  return type === 'object' && required.every((name) => properties[name]?.default !== undefined)
}

/** Accepts a command without a body if it needs no member: that is the same as an empty object. */
export const acceptNoBody = (app: FastifyInstance): void => {
  app.addHook('preValidation', (req, _reply, done) => {
    const { body, headers } = (req.routeOptions.schema ?? {}) as { body?: JsonSchema; headers?: JsonSchema }
    const isCommand = req.method === 'POST' && headers?.properties?.['idempotency-key'] !== undefined
    if (req.body === undefined && isCommand && isOmissible(body)) req.body = {}
    done()
  })
}

/** Returns the value of a text in which numbers too small for double precision are infinite, too, instead of 0. */
const spelled = (text: string): unknown =>
  JSON.parse(text, (_name, value: unknown, context?: { source?: string }) =>
    value === 0 && /^[^eE]*[1-9]/.test(context?.source ?? '') ? Infinity : value,
  )

const FORM = 'application/x-www-form-urlencoded'

/** Accepts UTF-8 forms, for protocols that need them: each parameter once. `refuse` words a fault as the route does. */
export const acceptForms = (
  app: FastifyInstance,
  codes: Pick<Codes, 'media_type'>,
  refuse: (detail: string) => AppError,
) =>
  app.addContentTypeParser(FORM, { parseAs: 'string' }, (req, body, done) => {
    if (!UTF8_ONLY.test(req.headers['content-type'] ?? '')) return done(otherMediaType(codes, req))
    const pairs = [...new URLSearchParams(String(body))]
    const once = new Map(pairs)
    if (once.size < pairs.length) return done(refuse('A parameter was sent twice.'))
    const form = Object.fromEntries(once)
    done(
      pointerToUnstorable(form) === undefined ? null : refuse('A parameter contains characters that cannot be stored.'),
      form,
    )
  })

/** Returns why the parser refuses a text; never repeats any of it, because it may hold a secret. */
const faultOf = (text: string): string => {
  try {
    JSON.parse(text)
    return 'Members named __proto__, and prototype in constructor, are not accepted.'
  } catch (error) {
    const { message } = error as Error
    const at = /at position (\d+)/.exec(message)?.[1]
    const early = /Unexpected end/.test(message) ? ': it ends too early' : ''
    return `The body is not valid JSON${at === undefined ? early : ` at character ${Number(at) + 1}`}.`
  }
}

const typesOf = (req: FastifyRequest): readonly string[] =>
  (req.routeOptions.schema as { consumes?: string[] } | undefined)?.consumes ?? ['application/json']

const isTaken = (req: FastifyRequest): boolean => {
  const given = req.headers['content-type'] ?? ''
  const [type = ''] = given.split(';')
  return UTF8_ONLY.test(given) && (req.is404 || typesOf(req).includes(type.trim().toLowerCase()))
}

export const otherMediaType = ({ media_type }: Pick<Codes, 'media_type'>, req: FastifyRequest) => {
  const given = req.headers['content-type']
  const detail = given ? `The content type ${JSON.stringify(given)} is not accepted here.` : 'Content-Type is missing.'
  return new AppError('validation_error', media_type, detail, {
    status: 415,
    hint: `Send ${typesOf(req).join(' or ')} in UTF-8.`,
  })
}

/** Returns where a value holds text or a number that cannot be stored; `undefined` if nowhere. */
export const pointerToUnstorable = (value: unknown, pointer = ''): string | undefined => {
  if (typeof value === 'string') return isStorable(value) ? undefined : pointer
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : pointer
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, member] of Object.entries(value)) {
    if (pointerToUnstorable(key) !== undefined) return `${pointer}/…`
    const found = pointerToUnstorable(member, `${pointer}/${key}`)
    if (found !== undefined) return found
  }
  return undefined
}

export const unstorable = ({ text: { code, status } }: Pick<Codes, 'text'>, pointer: string) =>
  new AppError('validation_error', code, `${pointer} contains a value that cannot be stored.`, {
    status,
    hint: 'Leave out the NUL character, halves of surrogate pairs, and numbers beyond double precision.',
    violations: [
      { pointer, code, message: 'holds U+0000, half a surrogate pair, or a number beyond double precision' },
    ],
  })
