import { queryOptions } from '@tanstack/react-query'
import type { paths } from '../../client/schema.d.ts'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { ProblemError, problemOf, withSession } from '../api/client.ts'

type DeviceRequest = paths['/v1/device/find']['post']['responses'][200]['content']['application/json']

const call = async (act: 'find' | 'approve' | 'deny', user_code: string): Promise<Response> => {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ user_code })
  const answer = await withSession(new Request(`/v1/device/${act}`, { method: 'POST', headers, body }))
  if (answer.ok) return answer
  const problem = await answer.json().catch(() => null)
  throw new ProblemError(problemFrom(answer.status, problem, answer.headers.get('retry-after')))
}

/** The device that waits for this code. Lookups are counted, so none is made without a request by the person. */
export const deviceQuery = (user_code: string) =>
  queryOptions({
    queryKey: ['device', user_code],
    queryFn: async () => (await (await call('find', user_code)).json()) as DeviceRequest,
    enabled: user_code !== '',
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  })

/** Signs the device in as the person of this page, or refuses it. Returns the refusal, or null. */
export const decideDevice = (act: 'approve' | 'deny', user_code: string): Promise<Problem | null> =>
  call(act, user_code).then(() => null, problemOf)
