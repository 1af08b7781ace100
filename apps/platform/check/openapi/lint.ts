import { readFileSync } from 'node:fs'
import { createConfig, lint } from '@redocly/openapi-core'
import spectral, { type RulesetDefinition } from '@stoplight/spectral-core'
import parsers from '@stoplight/spectral-parsers'
import rulesets from '@stoplight/spectral-rulesets'
import { PUBLIC_DOCUMENT } from './files.ts'

/** The findings of Redocly's recommended rules for the public document. */
export const lintByRedocly = async (): Promise<string[]> => {
  const config = await createConfig({
    extends: ['recommended'],
    // A sign-in through a provider redirects a browser with 303; that is its only success.
    rules: { 'operation-2xx-response': 'off' },
  })
  const found = await lint({ ref: PUBLIC_DOCUMENT, config })
  return found.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer ?? ''})`)
}

/** The findings of Spectral's recommended rules for it. */
export const lintBySpectral = async (): Promise<string[]> => {
  const linter = new spectral.Spectral()
  linter.setRuleset({
    extends: [[rulesets.oas as RulesetDefinition, 'recommended']],
    rules: {
      // The operator of the platform is the contact, and the document is the same everywhere.
      'info-contact': 'off',
      // Its validator cannot read \p{L}; test/contract/examples.test.ts validates every example.
      'oas3-valid-media-example': 'off',
    },
  })
  const text = readFileSync(PUBLIC_DOCUMENT, 'utf8')
  const found = await linter.run(new spectral.Document(text, parsers.Json, PUBLIC_DOCUMENT))
  return found.map(({ code, message, path }) => `${code}: ${message} (${path.join('/')})`)
}
