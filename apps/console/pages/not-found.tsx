import { Link } from '@tanstack/react-router'
import { t } from '../i18n/index.ts'
import { Heading, Page } from '../parts/page.tsx'

export const NotFound = () => (
  <Page>
    <Heading title={t.problem.not_found_title}>{t.problem.not_found_title}</Heading>
    <p>{t.problem.page_not_found}</p>
    <p>
      <Link to="/inbox" search={{ for: 'me' }} className="button">
        {t.problem.home}
      </Link>
    </p>
  </Page>
)
