import { retryAfterMs } from '../../shared/contracts/client/problem.ts'

const SOON_MS = 2000

/** How long to wait before the next try. */
export const retryAfter = (answer: Response): number => retryAfterMs(answer.headers.get('retry-after')) || SOON_MS

/** The code of a refusal; `undefined` if its body is not a problem document. */
export const codeOf = async (answer: Response): Promise<string | undefined> => {
  const body: unknown = await answer.json().catch(() => undefined)
  const code = (body as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** The second step after a correct password: proves one of these factors, with the token. */
export type SecondStep = { factor_token: string; factors: readonly string[] }

/** The second step that the answer requires; `undefined` if it requires none. */
export const secondStepOf = async (answer: Response): Promise<SecondStep | undefined> => {
  const body: unknown = await answer.json().catch(() => undefined)
  const { factor_token, factors } = (body ?? {}) as Partial<SecondStep>
  return typeof factor_token === 'string' ? { factor_token, factors: factors ?? ['passkey'] } : undefined
}

/** `scope` limits a person's session to setting up a second factor. */
type Claims = { sub: string; session_id: string; username: string; scope?: string[] }

/** The claims that this page displays; only servers verify the token. */
export const claimsOf = (token: string): Claims => {
  const part = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')
  const bytes = Uint8Array.from(atob(part), (letter) => letter.charCodeAt(0))
  return JSON.parse(new TextDecoder().decode(bytes)) as Claims
}
