import { describe, expect, it } from 'vitest'
import { createAddressReader } from '../../apps/gateway/edge/headers.ts'
import { createRouter, parseTarget } from '../../apps/gateway/routes/router.ts'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { PERMISSIONS } from '../../apps/shared/auth/permissions.ts'
import { AppError } from '../../apps/shared/errors.ts'

const refusal = (url: string): string => {
  try {
    parseTarget(url)
    return 'accepted'
  } catch (error) {
    if (error instanceof AppError) return `${error.status} ${error.code}`
    throw error
  }
}

describe('request targets', () => {
  it('are refused in every form that two parsers could read differently', () => {
    const corpus = [
      '*',
      'http://evil.test/api/v1/resources',
      '//evil.test/api',
      '/api//v1/resources',
      '/api/./v1/resources',
      '/api/../internal/v1',
      '/api/..;/internal',
      '/api/...',
      '/api/%2e%2e/internal',
      '/api/%2E/internal',
      '/api/v1%2fresources',
      '/api/v1%2Fresources',
      '/api/v1%5cresources',
      '/api\\v1\\resources',
      '/api/v1/resources%00',
      '/api/v1/resources%0d%0a',
      '/api/v1/resources%20x',
      '/api/v1/%252e%252e',
      '/api/v1/%25',
      '/api/v1/%',
      '/api/v1/%2',
      '/api/v1/%zz',
      '/api/v1/%u0041',
      '/api/v1/%c0%ae',
      '/api/v1/%C3%A9',
      '/api/v1/é',
      '/api/v1/<x>',
      '/api/v1/{id}',
      '/api/v1/a|b',
      '/api/v1/a^b',
      '/api/v1/"',
      '/api/v1/resources#x',
      '/api/v1/resources?a=%zz',
      '/api/v1/resources?a=%',
      '/api/v1/resources?a=é',
      '/api/v1/resources?a=<x>',
      '/api/v1/resources?a=b#c',
      '/%2',
      '',
    ]
    for (const url of corpus) expect(refusal(url), url).toBe('400 bad_path')
  })

  it('are too long above 2 KiB of path or 8 KiB of query', () => {
    expect(refusal(`/${'a'.repeat(2047)}`)).toBe('accepted')
    expect(refusal(`/${'a'.repeat(2048)}`)).toBe('414 uri_too_long')
    expect(refusal(`/a?${'a'.repeat(8192)}`)).toBe('accepted')
    expect(refusal(`/a?${'a'.repeat(8193)}`)).toBe('414 uri_too_long')
  })

  it('are read with harmless percent sequences decoded', () => {
    expect(parseTarget('/api/v1/resources:import').segments).toEqual(['api', 'v1', 'resources:import'])
    expect(parseTarget('/%61pi/v1/a%3Ab')).toMatchObject({ path: '/api/v1/a:b', segments: ['api', 'v1', 'a:b'] })
    expect(parseTarget('/api/v1/resources?filter=a%20eq%20%22b%22&sort=-x').query).toBe(
      'filter=a%20eq%20%22b%22&sort=-x',
    )
    expect(parseTarget('/api/').segments).toEqual(['api', ''])
  })
})

describe('the route table', () => {
  const router = createRouter(ROUTES)
  const route = (method: string, path: string) => {
    const found = router(method, parseTarget(path).segments)
    return found && 'match' in found ? found.match : found
  }

  it('names only permissions that exist, and each endpoint once', () => {
    const known = new Set<string>([...PERMISSIONS, 'self', 'bearer', 'none'])
    for (const { permission, path } of ROUTES)
      for (const one of [permission].flat()) expect(known.has(one), path).toBe(true)
    expect(() => createRouter([...ROUTES, ...ROUTES.slice(0, 1)])).toThrow(/twice/)
  })

  it('reaches every row by its own path and no other app', () => {
    for (const row of ROUTES) {
      const path = row.path.replaceAll(/\{\w+\}/g, 'x-1')
      expect(route(row.method, path), `${row.method} ${path}`).toMatchObject({ route: row })
    }
  })

  it("also reaches the apps' names below /v1, so their links work", () => {
    for (const row of ROUTES.filter(({ upstream }) => upstream === 'catalog' || upstream === 'operations')) {
      const path = row.path.slice('/api'.length).replaceAll(/\{\w+\}/g, 'x-1')
      expect(route(row.method, path), `${row.method} ${path}`).toMatchObject({ route: row, upstream_path: path })
    }
  })

  it('is closed: every other path is 404, in any spelling', () => {
    for (const path of [
      '/internal/v1/resources',
      '/api/internal/v1',
      '/api/v1/internal',
      '/metrics',
      '/api',
      '/api/',
      '/api/v1',
      '/API/v1/resources',
      '/api/v1/resources/',
      '/v1/resources/',
      '/V1/resources',
      '/v1',
      '/auth',
      '/v1/token/',
      '/api/v1/resources/a/b/c',
      '/health',
    ]) {
      expect(route('GET', path), path).toBeUndefined()
    }
    expect(route('DELETE', '/api/v1/resources')).toEqual({ allow: expect.arrayContaining(['GET', 'POST']) })
  })

  it('builds the upstream path from the template, whatever the spelling was', () => {
    expect(route('GET', '/%61pi/v1/%72esources/a%3Ab')).toMatchObject({ upstream_path: '/v1/resources/a%3Ab' })
    expect(route('GET', '/api/v1/resources/srv.eu-1@x')).toMatchObject({ upstream_path: '/v1/resources/srv.eu-1%40x' })
    expect(route('POST', '/auth/login')).toMatchObject({ upstream_path: '/auth/login' })
    expect(route('POST', '/api/v1/resources:import')).toMatchObject({ upstream_path: '/v1/resources:import' })
    expect(route('GET', '/api/v1/capabilities/definitions/net.port')).toMatchObject({
      upstream_path: '/v1/capabilities/definitions/net.port',
    })
    expect(route('GET', `/api/v1/resources/${'a'.repeat(256)}`)).toBeUndefined()
  })

  it('prefers a literal to a parameter', () => {
    expect(route('POST', '/api/v1/sessions/revoke-others')).toMatchObject({
      upstream_path: '/v1/sessions/revoke-others',
    })
    expect(route('GET', '/api/v1/users/me')).toMatchObject({ route: { upstream: 'identity' } })
    expect(route('GET', '/api/v1/resources/a/operations')).toMatchObject({ route: { upstream: 'operations' } })
    expect(route('GET', '/api/v1/resources/a/operations-summary')).toMatchObject({ route: { upstream: 'catalog' } })
  })
})

describe('the client address', () => {
  it('is the socket’s, unless a trusted proxy says more: then the right-most address that no proxy added', () => {
    const direct = createAddressReader([])
    expect(direct('::ffff:10.0.0.7', '1.2.3.4')).toEqual({ address: '10.0.0.7', key: '10.0.0.7' })
    const behind = createAddressReader(['10.0.0.0/8', 'fd00::/8'])
    expect(behind('10.0.0.7', '6.6.6.6, 1.2.3.4, 10.9.9.9').address).toBe('1.2.3.4')
    expect(behind('9.9.9.9', '1.2.3.4').address).toBe('9.9.9.9')
    expect(behind('10.0.0.7', 'nonsense').address).toBe('10.0.0.7')
    expect(behind('fd00::1', '2001:db8:1:2:3::9')).toEqual({
      address: '2001:db8:1:2:3:0:0:9',
      key: '2001:db8:1:2::/64',
    })
    expect(behind('10.0.0.7', '6.6.6.6, 203.0.113.7:51234, 10.9.9.9:443').address).toBe('203.0.113.7')
    for (const entry of ['[2001:db8::1]:443', '[2001:db8::1]', '2001:db8::1'])
      expect(behind('10.0.0.7', entry).address, entry).toBe('2001:db8:0:0:0:0:0:1')
    for (const entry of ['[203.0.113.7', '203.0.113.7:', '203.0.113.7:x', '[nonsense]:1'])
      expect(behind('10.0.0.7', entry).address, entry).toBe('10.0.0.7')
    expect(() => createAddressReader(['proxy.local'])).toThrow(/GATEWAY__HTTP__TRUSTED_PROXIES/)
  })
})
