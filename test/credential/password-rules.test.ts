import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { isPasswordText, passwordViolations } from '../../apps/credential/passwords/rules.ts'
import { createStrengthEstimator } from '../../apps/credential/passwords/strength.ts'

const strength = createStrengthEstimator()
afterAll(() => strength.close())

const strong = { score: 4, warning: '', suggestion: '', is_common: false }
const codes = (password: string, estimated = strong) => passwordViolations(password, estimated).map(({ code }) => code)
const judged = async (password: string, inputs: string[] = []) =>
  passwordViolations(password, await strength.estimate(password, inputs))

describe('each rule by its name', () => {
  it.each([
    ['Ab1-xyz', 'PasswordTooWeakError'],
    ['abcdef1-xyz', 'PasswordMissingUppercaseError'],
    ['ABCDEF1-XYZ', 'PasswordMissingLowercaseError'],
    ['Abcdefg-xyz', 'PasswordMissingDigitError'],
    ['Abcdefg1xyz', 'PasswordMissingSpecialCharError'],
  ])('%s breaks %s alone', (password, code) => {
    expect(codes(password)).toEqual([code])
  })
  it('a low score is PasswordTooWeakError with the estimator’s words', () => {
    const weak = { ...strong, score: 2 }
    const message = (changes: object) => passwordViolations('Abcdef1-xyz', { ...weak, ...changes })[0]?.message
    expect(message({ warning: 'This is a top-10 password', suggestion: 'Add words' })).toBe('This is a top-10 password')
    expect(message({ suggestion: 'Add words' })).toBe('Add words')
    expect(message({})).toMatch(/too easy/)
    expect(codes('Abcdef1-xyz', { ...strong, score: 3 })).toEqual([])
  })
  it('all broken rules are named, the first in the order of the specification', () => {
    expect(codes('', { ...strong, score: 0 })).toEqual([
      'PasswordTooWeakError',
      'PasswordMissingUppercaseError',
      'PasswordMissingLowercaseError',
      'PasswordMissingDigitError',
      'PasswordMissingSpecialCharError',
      'PasswordTooWeakError',
    ])
  })
})

describe('letters and digits are those of Unicode', () => {
  it('length counts code points, classes count every script', () => {
    expect(codes('Ωω٣-😀😀😀😀')).toEqual([])
    expect(codes('Ωω٣-😀😀😀')).toEqual(['PasswordTooWeakError'])
    expect(codes('Ab½cdefgh²')).toEqual(['PasswordMissingDigitError', 'PasswordMissingSpecialCharError'])
  })
  it('a decomposed spelling is judged as its composed form', () => {
    expect(codes('Äb1-xyzw'.normalize('NFD'))).toEqual([])
    expect(codes('Äb1-xyz'.normalize('NFD'))).toEqual(['PasswordTooWeakError'])
  })
})

describe('the estimator', () => {
  it('refuses common patterns, the own name and the product’s, and accepts a good phrase', async () => {
    expect((await judged('P@ssword1'))[0]?.code).toBe('PasswordTooWeakError')
    expect((await judged('Eva.lovelace-1', ['eva.lovelace']))[0]?.code).toBe('PasswordTooWeakError')
    expect(await judged('Tr0mbone-Glacier-Napkin', ['eva'])).toEqual([])
  })
  it('names the most common passwords whatever their score', async () => {
    expect((await strength.estimate('PassWord', [])).is_common).toBe(true)
  })
  it('never holds up the process, however long the input', async () => {
    const started = performance.now()
    let ticks = 0
    const timer = setInterval(() => {
      ticks += 1
    }, 5)
    await strength.estimate('Aa1-'.repeat(32), []).catch(() => {})
    clearInterval(timer)
    expect(performance.now() - started).toBeLessThan(2000)
    expect(ticks).toBeGreaterThan(0)
  })
  it('gives up after half a second, ends the thread, and works again with the next one', async () => {
    const file = join(tmpdir(), `stuck-${process.pid}.mjs`)
    writeFileSync(
      file,
      "import { parentPort } from 'node:worker_threads'; parentPort.on('message', ({ password }) => { while (password === 'stuck'); parentPort.postMessage({ score: 4 }) }); parentPort.postMessage('ready')",
    )
    const estimator = createStrengthEstimator(pathToFileURL(file))
    await expect(estimator.estimate('stuck', [])).rejects.toMatchObject({ status: 503 })
    await expect(estimator.estimate('free', [])).resolves.toMatchObject({ score: 4 })
    await estimator.close()
  })
})

describe('any text', () => {
  it('is bounded in code points and bytes', () => {
    expect(isPasswordText('x'.repeat(128))).toBe(true)
    expect(isPasswordText('x'.repeat(129))).toBe(false)
    expect(isPasswordText('😀'.repeat(128))).toBe(true)
    expect(isPasswordText('\ud800abc')).toBe(false)
    expect(isPasswordText('')).toBe(false)
  })
  it('gets a list of known codes and never an error', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) =>
        codes(text).every((code) => code.startsWith('Password')),
      ),
    )
  })
})
