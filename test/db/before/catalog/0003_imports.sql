CREATE TABLE "catalog"."import_ref" (
	"source_name" text collate "C" NOT NULL,
	"external_id" text collate "C" NOT NULL,
	"rid" bigint NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	CONSTRAINT "import_ref_source_name_external_id_pk" PRIMARY KEY("source_name","external_id")
);
