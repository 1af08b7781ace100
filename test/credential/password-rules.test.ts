import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { isInFile, refuseBreachedFile } from '../../apps/credential/passwords/breached.ts'
import { isPasswordText, passwordViolations } from '../../apps/credential/passwords/rules.ts'
import { createStrengthEstimator } from '../../apps/credential/passwords/strength.ts'

const strength = createStrengthEstimator()
afterAll(() => strength.close())

const strong = { score: 4, warning: '', suggestion: '', is_breached: false }
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
  it('all broken rules are named, the first in the order of the specification (ASVS 6.2.5)', () => {
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
  it('length counts code points, classes count every script (ASVS 6.2.1)', () => {
    expect(codes('Ωω٣-😀😀😀😀')).toEqual([])
    expect(codes('Ωω٣-😀😀😀')).toEqual(['PasswordTooWeakError'])
    expect(codes('Ab½cdefgh²')).toEqual(['PasswordMissingDigitError', 'PasswordMissingSpecialCharError'])
  })
  it('a decomposed spelling is judged like its composed form', () => {
    expect(codes('Äb1-xyzw'.normalize('NFD'))).toEqual([])
    expect(codes('Äb1-xyz'.normalize('NFD'))).toEqual(['PasswordTooWeakError'])
  })
})

describe('the estimator', () => {
  it("refuses common patterns, the user's own name and the product’s, and accepts a good phrase", async () => {
    expect((await judged('P@ssword1'))[0]?.code).toBe('PasswordTooWeakError')
    expect((await judged('Eva.lovelace-1', ['eva.lovelace']))[0]?.code).toBe('PasswordTooWeakError')
    expect(await judged('Tr0mbone-Glacier-Napkin', ['eva'])).toEqual([])
  })
  it('names breached passwords in any case, even if they keep every other rule (ASVS 6.2.4, 6.2.12)', async () => {
    for (const password of ['123456', 'PassWord'])
      expect((await strength.estimate(password, [])).is_breached).toBe(true)
    for (const password of ['Jhon@ta2011', 'xx85.eNK7a8M2', 'onlyOne4-myXworld'])
      expect(await judged(password)).toEqual([
        { code: 'PasswordTooWeakError', message: 'This password is known from a data breach.' },
      ])
  })
  it('never blocks the process, however long the input', async () => {
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
    const estimator = createStrengthEstimator({ file: pathToFileURL(file) })
    await expect(estimator.estimate('stuck', [])).rejects.toMatchObject({ status: 503 })
    await expect(estimator.estimate('free', [])).resolves.toMatchObject({ score: 4 })
    await estimator.close()
  })
})

describe('a file of Pwned Passwords', () => {
  const file = join(tmpdir(), `breached-${process.pid}.txt`)
  const sha1 = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()
  const write = (passwords: string[], lineEnd = '\r\n') => {
    const lines = passwords.map((password, n) => `${sha1(password)}:${7 ** (n % 12)}`).sort()
    writeFileSync(file, lines.join(lineEnd) + lineEnd)
  }
  it('finds each of its passwords, including the first and the last, and no other (ASVS 6.2.12)', () => {
    const texts = fc.uniqueArray(fc.string({ unit: 'grapheme', minLength: 8 }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(texts, fc.constantFrom('\n', '\r\n'), (passwords, lineEnd) => {
        const [absent = '', ...present] = passwords
        write(present.length > 0 ? present : ['Other-Napkin-7'], lineEnd)
        expect(present.filter((password) => !isInFile(file, password))).toEqual([])
        expect(isInFile(file, absent)).toBe(false)
      }),
      { numRuns: 40 },
    )
  })
  it('refuses a password by the rules, and a newer file applies without a restart', async () => {
    write(['Tr0mbone-Glacier-Napkin'])
    const estimator = createStrengthEstimator({ breached_file: file })
    const asked = () => estimator.estimate('Tr0mbone-Glacier-Napkin', [])
    expect(codes('Tr0mbone-Glacier-Napkin', await asked())).toEqual(['PasswordTooWeakError'])
    write(['Another-Napkin-7'])
    expect(codes('Tr0mbone-Glacier-Napkin', await asked())).toEqual([])
    await estimator.close()
  })
  it('stops the start if it is missing or not such a file', () => {
    expect(refuseBreachedFile(`${file}.none`)).toMatch(/cannot be read/)
    writeFileSync(file, 'password\n123456\n')
    expect(refuseBreachedFile(file)).toMatch(/HASH:COUNT/)
    write(['x'])
    expect(refuseBreachedFile(file)).toBeUndefined()
  })
})

describe('any string', () => {
  it('is bounded in code points and bytes (ASVS 6.2.9)', () => {
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
