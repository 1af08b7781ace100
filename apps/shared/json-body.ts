import type { FastifyInstance } from 'fastify'
import { AppError } from './errors.ts'
import { JSON_LIMITS, type JsonLimits, scanJson } from './json.ts'

const JSON_TYPE = /^application\/json(\s*;|$)/i
const PATCH_TYPES = /^application\/(json|merge-patch\+json|json-patch\+json)(\s*;|$)/i
const UTF8_ONLY = /^[^;]+(;\s*charset="?utf-8"?\s*)?$/i

/** How an area spells the refusals of this parser. */
type Codes = { media_type: string; malformed: string }

/** The one body parser: JSON in UTF-8 within these limits, no doubled member, no prototype. All else is refused. */
export const acceptJson = (
  app: FastifyInstance,
  { json_limits = JSON_LIMITS, patches = false }: { json_limits?: JsonLimits; patches?: boolean },
  codes: Codes,
): void => {
  const parse = app.getDefaultJsonParser('error', 'error')
  const malformed = (detail: string) =>
    new AppError('validation_error', codes.malformed, detail, {
      status: 400,
      hint: 'Send one JSON document in UTF-8, and nothing after it.',
    })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>(patches ? PATCH_TYPES : JSON_TYPE, { parseAs: 'buffer' }, (req, body, done) => {
    const type = req.headers['content-type'] ?? ''
    if (!UTF8_ONLY.test(type)) return done(otherMediaType(codes, `The content type ${JSON.stringify(type)}`))
    if (body.length === 0) return done(null, undefined)
    let text: string
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    } catch {
      return done(malformed('The body is not valid UTF-8.'))
    }
    try {
      scanJson(text, json_limits)
    } catch (error) {
      return done(error as AppError)
    }
    parse(req, text, (error, value) => {
      if (error) done(malformed(`The body is not valid JSON: ${error.message}`))
      else done(null, value)
    })
  })
}

export const otherMediaType = ({ media_type }: Codes, what = 'This content type') =>
  new AppError('validation_error', media_type, `${what} is not accepted here.`, {
    status: 415,
    hint: 'Send application/json in UTF-8.',
  })
