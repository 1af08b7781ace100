import { Link } from '@tanstack/react-router'
import { Heading, Page } from '../ui/page.tsx'
import { t } from '../words/index.ts'

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
